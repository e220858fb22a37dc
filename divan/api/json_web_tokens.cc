#include "divan/api/json_web_tokens.h"

#include <fmt/core.h>
#include <openssl/crypto.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/base/json_members.h"
#include "divan/http/field_list.h"

namespace divan::api {
namespace {

constexpr const char* kKeys = "jwt_keys";
constexpr const char* kAuth = "jwt_auth";

using PublicKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

// A signature algorithm of RFC 7518 or RFC 8037.
struct Algorithm {
  std::string_view name;
  std::string_view key_type;     // in the settings
  const EVP_MD* (*digest)();     // null for EdDSA
  std::string_view curve = {};   // OpenSSL's name of an elliptic curve
  std::size_t number_bytes = 0;  // of the two numbers of its signature
};

constexpr std::array<Algorithm, 10> kAlgorithms = {{{"HS256", "hmac", EVP_sha256},
                                                    {"HS384", "hmac", EVP_sha384},
                                                    {"HS512", "hmac", EVP_sha512},
                                                    {"RS256", "rsa", EVP_sha256},
                                                    {"RS384", "rsa", EVP_sha384},
                                                    {"RS512", "rsa", EVP_sha512},
                                                    {"ES256", "ec", EVP_sha256, "prime256v1", 32},
                                                    {"ES384", "ec", EVP_sha384, "secp384r1", 48},
                                                    {"ES512", "ec", EVP_sha512, "secp521r1", 66},
                                                    {"EdDSA", "eddsa", nullptr}}};

const Algorithm& find_algorithm(std::string_view name) {
  const auto* const found = std::ranges::find(kAlgorithms, name, &Algorithm::name);
  if (found == kAlgorithms.end()) throw bad_request("Invalid alg header parameter");
  return *found;
}

Error malformed() { return bad_request("Malformed authentication token"); }

// The JSON object in a part of a token, in the form of json::compact().
std::string parse_part(std::string_view part) {
  const auto bytes = from_base64url(part);
  if (!bytes) throw malformed();
  std::string object;
  try {
    object = json::compact(*bytes);
  } catch (const Error&) { throw malformed(); }
  if (!object.starts_with('{')) throw bad_request("Not an object");
  return object;
}

std::array<std::string_view, 3> split(std::string_view token) {
  if (std::ranges::count(token, '.') != 2) throw malformed();
  const auto first = token.find('.'), second = token.rfind('.');
  return {token.substr(0, first), token.substr(first + 1, second - first - 1), token.substr(second + 1)};
}

// A key in PEM, whose line breaks are written as \n in a settings file.
PublicKey parse_pem(std::string text) {
  for (auto at = text.find("\\n"); at != std::string::npos; at = text.find("\\n", at + 1))
    text.replace(at, 2, "\n");
  const std::unique_ptr<BIO, decltype(&BIO_free)> bytes(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free);
  return {PEM_read_bio_PUBKEY(bytes.get(), nullptr, nullptr, nullptr), EVP_PKEY_free};
}

// Signatures of tokens are two numbers of a fixed size (RFC 7518, section 3.4); OpenSSL reads DER. Empty if
// the size is wrong.
std::string to_der(std::string_view signature, std::size_t number_bytes) {
  if (signature.size() != 2 * number_bytes) return {};
  const std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> numbers(ECDSA_SIG_new(), ECDSA_SIG_free);
  const auto number = [&](std::size_t at) {
    return BN_bin2bn(reinterpret_cast<const unsigned char*>(signature.data()) + at,
                     static_cast<int>(number_bytes), nullptr);
  };
  ECDSA_SIG_set0(numbers.get(), number(0), number(number_bytes));
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(numbers.get(), &der);
  std::string bytes(reinterpret_cast<const char*>(der), static_cast<std::size_t>(std::max(size, 0)));
  OPENSSL_free(der);
  return bytes;
}

std::vector<std::string> split_roles(std::string_view list) {
  std::vector<std::string> roles;
  for (const auto role : http::split_list(list)) roles.emplace_back(role);
  return roles;
}

// "a.b\.c" is the path a, b.c.
std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> names(1);
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path.substr(i).starts_with("\\.")) {
      names.back() += path[++i];
    } else if (path[i] == '.') {
      names.emplace_back();
    } else {
      names.back() += path[i];
    }
  }
  return names;
}

std::optional<std::string> string_claim(std::string_view object, std::string_view name) {
  const auto members = json::members_of(object);
  return json::string_value(json::find(members, name).value_or(""));
}

// The number of seconds in a claim (RFC 7519, section 2: NumericDate); nullopt if it is missing.
std::optional<double> time_claim(std::string_view claims, std::string_view name) {
  const auto members = json::members_of(claims);
  const auto value = json::find(members, name);
  if (!value) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (error != std::errc() || end != value->data() + value->size())
    throw bad_request(fmt::format("Invalid {} claim", name));
  return number;
}

}  // namespace

// A key of one type.
class TokenVerifier::Key {
 public:
  // Throws bad_request for a value that is no key of the type.
  Key(std::string_view type, const std::string& value) : public_key_(nullptr, EVP_PKEY_free) {
    if (type == "hmac") {
      const auto bytes = from_base64(value);
      if (!bytes || bytes->empty()) throw bad_request("A key for HMAC must be in base64.");
      secret_ = *bytes;
      return;
    }
    public_key_ = parse_pem(value);
    const int kind = type == "rsa" ? EVP_PKEY_RSA : (type == "ec" ? EVP_PKEY_EC : EVP_PKEY_ED25519);
    if (!public_key_ || EVP_PKEY_get_base_id(public_key_.get()) != kind)
      throw bad_request(fmt::format("The value is not a public key of the type `{}` in PEM.", type));
  }

  bool verifies(const Algorithm& algorithm, std::string_view message, std::string_view signature) const {
    if (!public_key_) return verifies_hmac(algorithm, message, signature);
    if (!algorithm.curve.empty() && curve() != algorithm.curve) return false;
    const std::string bytes =
        algorithm.number_bytes > 0 ? to_der(signature, algorithm.number_bytes) : std::string(signature);
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    const EVP_MD* const digest = algorithm.digest == nullptr ? nullptr : algorithm.digest();
    return EVP_DigestVerifyInit(context.get(), nullptr, digest, nullptr, public_key_.get()) == 1 &&
           EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                            reinterpret_cast<const unsigned char*>(message.data()), message.size()) == 1;
  }

 private:
  std::string curve() const {
    std::array<char, 80> name{};
    std::size_t size = 0;
    EVP_PKEY_get_group_name(public_key_.get(), name.data(), name.size(), &size);
    return {name.data(), size};
  }

  bool verifies_hmac(const Algorithm& algorithm, std::string_view message, std::string_view signature) const {
    std::array<unsigned char, EVP_MAX_MD_SIZE> code{};
    unsigned size = 0;
    HMAC(algorithm.digest(), secret_.data(), static_cast<int>(secret_.size()),
         reinterpret_cast<const unsigned char*>(message.data()), message.size(), code.data(), &size);
    return size > 0 && size == signature.size() && CRYPTO_memcmp(code.data(), signature.data(), size) == 0;
  }

  std::string secret_;
  PublicKey public_key_;
};

TokenVerifier::~TokenVerifier() = default;

TokenVerifier::TokenVerifier(const Config& config) {
  const auto sections = config.all();
  if (const auto keys = sections.find(kKeys); keys != sections.end()) {
    for (const auto& [name, value] : keys->second) {
      const std::string type = name.substr(0, name.find(':'));
      const bool is_known = std::ranges::find(kAlgorithms, type, &Algorithm::key_type) != kAlgorithms.end();
      if (!is_known || name.size() <= type.size() + 1)
        throw bad_request(fmt::format("[{}] {}: expected hmac:ID, rsa:ID, ec:ID or eddsa:ID.", kKeys, name));
      try {
        keys_.emplace(name, std::make_unique<const Key>(type, value));
      } catch (const Error& error) {
        throw bad_request(fmt::format("[{}] {}: {}", kKeys, name, error.reason()));
      }
    }
  }
  read_required_claims(config.get(kAuth, "required_claims", "exp"));
  const std::string path = config.get(kAuth, "roles_claim_path", "");
  roles_path_ =
      path.empty() ? std::vector{config.get(kAuth, "roles_claim_name", "_couchdb.roles")} : split_path(path);
}

// exp, nbf, {iss, "issuer"}
void TokenVerifier::read_required_claims(const std::string& list) {
  constexpr std::array<std::pair<std::string_view, Claim>, 5> kClaims = {{{"exp", Claim::exp},
                                                                          {"nbf", Claim::nbf},
                                                                          {"iat", Claim::iat},
                                                                          {"typ", Claim::typ},
                                                                          {"kid", Claim::kid}}};
  const auto invalid = [&] {
    return bad_request(
        fmt::format("[{}] required_claims is `{}`; expected exp, nbf, iat, typ, kid or "
                    "{{iss, \"ISSUER\"}}, separated by commas.",
                    kAuth, list));
  };
  std::string_view rest = http::trim(list);
  while (!rest.empty()) {
    std::size_t end = 0;
    if (rest.starts_with('{')) {
      end = rest.find('}');
      const auto comma = rest.find(',');
      if (end == std::string_view::npos || comma > end || http::trim(rest.substr(1, comma - 1)) != "iss")
        throw invalid();
      const auto quoted = http::trim(rest.substr(comma + 1, end - comma - 1));
      if (quoted.size() < 3 || quoted.front() != '"' || quoted.back() != '"') throw invalid();
      issuer_ = quoted.substr(1, quoted.size() - 2);
      ++end;
    } else {
      end = std::min(rest.find(','), rest.size());
      const auto* const claim = std::ranges::find(kClaims, http::trim(rest.substr(0, end)),
                                                  &std::pair<std::string_view, Claim>::first);
      if (claim == kClaims.end()) throw invalid();
      required_.push_back(claim->second);
    }
    rest = http::trim(rest.substr(end));
    if (rest.empty()) break;
    if (!rest.starts_with(',')) throw invalid();
    rest = http::trim(rest.substr(1));
    if (rest.empty()) throw invalid();
  }
}

bool TokenVerifier::is_required(Claim claim) const {
  return std::ranges::find(required_, claim) != required_.end();
}

const TokenVerifier::Key& TokenVerifier::key_of(std::string_view algorithm,
                                                const std::optional<std::string>& id) const {
  const auto key =
      keys_.find(fmt::format("{}:{}", find_algorithm(algorithm).key_type, id.value_or("_default")));
  if (key == keys_.end()) throw bad_request("Unknown kid");
  return *key->second;
}

void TokenVerifier::check_claims(std::string_view claims, std::int64_t now_s) const {
  if (issuer_) {
    const auto issuer = string_claim(claims, "iss");
    if (!issuer) throw bad_request("Missing iss claim");
    if (issuer != issuer_) throw bad_request("Invalid iss claim");
  }
  const auto now = static_cast<double>(now_s);
  const auto issued = time_claim(claims, "iat"), begins = time_claim(claims, "nbf"),
             ends = time_claim(claims, "exp");
  if (is_required(Claim::iat) && !issued) throw bad_request("Missing iat claim");
  if (is_required(Claim::nbf) && !begins) throw bad_request("Missing nbf claim");
  if (is_required(Claim::exp) && !ends) throw bad_request("Missing exp claim");
  // Claims that are not required are valid, too.
  if (begins && *begins > now) throw unauthorized("nbf not in past");
  if (ends && *ends <= now) throw unauthorized("exp not in future");
}

std::vector<std::string> TokenVerifier::roles_of(std::string_view claims) const {
  std::string_view value = claims;
  for (const auto& name : roles_path_) {
    const auto members = json::members_of(value);
    const auto member = json::find(members, name);
    if (!member) return {};
    value = *member;
  }
  if (const auto list = json::string_value(value)) return split_roles(*list);
  std::vector<std::string> roles;
  const bool is_array = json::for_each_element(value, [&](std::string_view element) {
    auto role = json::string_value(element);
    if (!role) throw bad_request("Malformed token");
    roles.push_back(*std::move(role));
    return true;
  });
  if (!is_array) throw bad_request("Malformed token");
  return roles;
}

TokenUser TokenVerifier::verify(std::string_view token, std::int64_t now_s) const {
  const auto [head_part, claims_part, signature_part] = split(token);
  const std::string head = parse_part(head_part);
  const auto algorithm = string_claim(head, "alg");
  if (!algorithm) throw bad_request("Missing alg header parameter");
  const auto id = string_claim(head, "kid");
  if (is_required(Claim::kid) && !id) throw bad_request("Missing kid claim");
  if (json::find(json::members_of(head), "crit")) throw bad_request("Unknown critical header parameter");
  const auto type = string_claim(head, "typ");
  if (is_required(Claim::typ) && !type) throw bad_request("Missing typ header parameter");
  if (is_required(Claim::typ) && type != "JWT") throw bad_request("Invalid typ header parameter");
  // The signature first: nothing in an unsigned token is answered.
  const auto signature = from_base64url(signature_part);
  if (!signature) throw malformed();
  const std::string_view message = token.substr(0, head_part.size() + 1 + claims_part.size());
  if (!key_of(*algorithm, id).verifies(find_algorithm(*algorithm), message, *signature))
    throw bad_request("Bad signature in authentication token");
  const std::string claims = parse_part(claims_part);
  check_claims(claims, now_s);
  TokenUser user;
  user.name = string_claim(claims, "sub").value_or("");
  if (user.name.empty()) throw unauthorized("Token missing sub claim.");
  user.roles = roles_of(claims);
  if (const auto ends = time_claim(claims, "exp"))
    user.expires_s = static_cast<std::int64_t>(std::clamp(*ends, 0.0, 1e15));
  return user;
}

}  // namespace divan::api
