#include "divan/api/json_web_tokens.h"

#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "divan/base/bytes.h"
#include "divan/base/digest.h"
#include "divan/base/error_testing.h"
#include "divan/base/precompiled_test.h"

namespace divan::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kTokenNow = 1'700'000'000;
constexpr const char* kClaims = R"({"sub":"ann","exp":1700000060})";

using PrivateKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

std::string pem_of(EVP_PKEY* key) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bytes(BIO_new(BIO_s_mem()), BIO_free);
  PEM_write_bio_PUBKEY(bytes.get(), key);
  char* data = nullptr;
  const auto size = static_cast<std::size_t>(BIO_get_mem_data(bytes.get(), &data));
  std::string pem(data, size), escaped;
  for (const char c : pem) escaped += c == '\n' ? "\\n" : std::string(1, c);
  return escaped;
}

std::string message_of(const std::string& head, const std::string& claims) {
  return to_base64url(head) + "." + to_base64url(claims);
}

std::string sign(EVP_PKEY* key, const EVP_MD* digest, const std::string& message, std::size_t number_bytes) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  EVP_DigestSignInit(context.get(), nullptr, digest, nullptr, key);
  std::size_t size = 0;
  const auto* text = reinterpret_cast<const unsigned char*>(message.data());
  EVP_DigestSign(context.get(), nullptr, &size, text, message.size());
  std::string signature(size, '\0');
  EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, text,
                 message.size());
  signature.resize(size);
  if (number_bytes == 0) return signature;
  const auto* der = reinterpret_cast<const unsigned char*>(signature.data());
  const std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> numbers(
      d2i_ECDSA_SIG(nullptr, &der, static_cast<long>(signature.size())), ECDSA_SIG_free);
  std::string fixed(2 * number_bytes, '\0');
  auto* out = reinterpret_cast<unsigned char*>(fixed.data());
  BN_bn2binpad(ECDSA_SIG_get0_r(numbers.get()), out, static_cast<int>(number_bytes));
  BN_bn2binpad(ECDSA_SIG_get0_s(numbers.get()), out + number_bytes, static_cast<int>(number_bytes));
  return fixed;
}

class JsonWebTokens : public ::testing::Test {
 protected:
  JsonWebTokens() { config_.override_with("jwt_keys", "hmac:_default", to_base64("secret")); }

  // A token with HMAC-SHA-256.
  static std::string token(const std::string& claims, const std::string& head = R"({"alg":"HS256"})",
                           const std::string& secret = "secret") {
    const std::string message = message_of(head, claims);
    return message + "." + to_base64url(hmac_sha256(secret, message));
  }
  TokenUser verify(const std::string& token) const { return TokenVerifier(config_).verify(token, kTokenNow); }
  std::string refusal(const std::string& token) const {
    return error_of([&] { verify(token); });
  }

  Config config_;
};

TEST_F(JsonWebTokens, ATokenNamesAUser) {
  const auto user = verify(token(R"({"sub":"ann","exp":1700000060,"_couchdb.roles":["a","_admin"]})"));
  EXPECT_EQ(user.name, "ann");
  EXPECT_THAT(user.roles, ElementsAre("a", "_admin"));
  EXPECT_EQ(user.expires_s, 1'700'000'060);
  EXPECT_THAT(verify(token(kClaims)).roles, IsEmpty());
  EXPECT_THAT(verify(token(R"({"sub":"a","exp":1.8e9,"_couchdb.roles":"x, y"})")).roles,
              ElementsAre("x", "y"));
}

TEST_F(JsonWebTokens, RolesHaveAPath) {
  config_.override_with("jwt_auth", "roles_claim_path", "my.nested\\.x");
  EXPECT_THAT(verify(token(R"({"sub":"a","exp":1800000000,"my":{"nested.x":["r"]}})")).roles,
              ElementsAre("r"));
  EXPECT_THAT(verify(token(R"({"sub":"a","exp":1800000000,"my":7})")).roles, IsEmpty());
  EXPECT_THAT(refusal(token(R"({"sub":"a","exp":1800000000,"my":{"nested.x":[1]}})")),
              HasSubstr("Malformed"));
}

// The last characters of two signatures may differ in unused bits.
bool is_same(const std::string& a, const std::string& b) {
  const auto end = b.rfind('.') + 1;
  return a.substr(0, end) == b.substr(0, end) &&
         from_base64url(a.substr(end)) == from_base64url(b.substr(end));
}

TEST_F(JsonWebTokens, EveryChangedCharacterIsDetected) {
  const std::string valid = token(kClaims);
  ASSERT_EQ(verify(valid).name, "ann");
  const TokenVerifier verifier(config_);
  for (std::size_t i = 0; i < valid.size(); ++i) {
    for (const char c : {'A', 'x', '.', '=', ' '}) {
      std::string changed = valid;
      changed[i] = c;
      if (is_same(changed, valid)) continue;
      EXPECT_THROW(verifier.verify(changed, kTokenNow), Error) << changed;
    }
  }
  for (std::size_t size = 0; size < valid.size(); ++size)
    EXPECT_THROW(verifier.verify(valid.substr(0, size), kTokenNow), Error);
}

TEST_F(JsonWebTokens, TimesAreChecked) {
  EXPECT_THAT(refusal(token(R"({"sub":"a","exp":1700000000})")), HasSubstr("exp not in future"));
  EXPECT_THAT(refusal(token(R"({"sub":"a"})")), HasSubstr("Missing exp claim"));
  EXPECT_THAT(refusal(token(R"({"sub":"a","exp":"1800000000"})")), HasSubstr("Invalid exp claim"));
  EXPECT_THAT(refusal(token(R"({"sub":"a","exp":1800000000,"nbf":1700000001})")),
              HasSubstr("nbf not in past"));
  config_.override_with("jwt_auth", "required_claims", R"(nbf, iat , {iss, "me"},typ,kid)");
  EXPECT_THAT(refusal(token(R"({"sub":"a"})")), HasSubstr("Missing kid"));
  config_.override_with("jwt_keys", "hmac:k", to_base64("secret"));
  const std::string head = R"({"alg":"HS256","kid":"k","typ":"JWT"})";
  EXPECT_THAT(refusal(token(R"({"sub":"a","nbf":1,"iat":1})", head)), HasSubstr("Missing iss"));
  EXPECT_THAT(refusal(token(R"({"sub":"a","nbf":1,"iat":1,"iss":"you"})", head)), HasSubstr("Invalid iss"));
  EXPECT_THAT(refusal(token(R"({"sub":"a","nbf":1,"iss":"me"})", head)), HasSubstr("Missing iat"));
  EXPECT_EQ(verify(token(R"({"sub":"a","nbf":1,"iat":1,"iss":"me"})", head)).expires_s, std::nullopt);
  // Not required, but expired.
  EXPECT_THAT(refusal(token(R"({"sub":"a","nbf":1,"iat":1,"iss":"me","exp":2})", head)), HasSubstr("exp"));
}

TEST_F(JsonWebTokens, ATokenNeedsAKnownKeyAndAUser) {
  EXPECT_THAT(refusal(token(kClaims, R"({"alg":"none"})")), HasSubstr("Invalid alg"));
  EXPECT_THAT(refusal(token(kClaims, R"({})")), HasSubstr("Missing alg"));
  EXPECT_THAT(refusal(token(kClaims, R"({"alg":"HS256","crit":["b64"],"b64":false})")),
              HasSubstr("critical"));
  EXPECT_THAT(refusal(token(kClaims, R"({"alg":"HS256","kid":"other"})")), HasSubstr("Unknown kid"));
  EXPECT_THAT(refusal(token(kClaims, R"({"alg":"RS256"})")), HasSubstr("Unknown kid"));
  EXPECT_THAT(refusal(token(kClaims, R"({"alg":"HS256"})", "other")), HasSubstr("Bad signature"));
  EXPECT_THAT(refusal(token(R"({"exp":1800000000})")), HasSubstr("unauthorized: Token missing sub claim."));
  EXPECT_THAT(refusal(token(R"({"exp":1800000000,"sub":7})")), HasSubstr("Token missing sub claim."));
  EXPECT_THAT(refusal(token("[]")), HasSubstr("Not an object"));
  EXPECT_THAT(refusal(token("{")), HasSubstr("Malformed"));
  EXPECT_THAT(refusal(""), HasSubstr("Malformed"));
}

TEST_F(JsonWebTokens, PublicKeysOfEveryKind) {
  const PrivateKey rsa(EVP_RSA_gen(2048), EVP_PKEY_free);
  const PrivateKey p256(EVP_EC_gen("P-256"), EVP_PKEY_free), p384(EVP_EC_gen("P-384"), EVP_PKEY_free),
      p521(EVP_EC_gen("P-521"), EVP_PKEY_free);
  const PrivateKey ed(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), EVP_PKEY_free);
  config_.override_with("jwt_keys", "rsa:_default", pem_of(rsa.get()));
  config_.override_with("jwt_keys", "ec:_default", pem_of(p256.get()));
  config_.override_with("jwt_keys", "ec:384", pem_of(p384.get()));
  config_.override_with("jwt_keys", "ec:521", pem_of(p521.get()));
  config_.override_with("jwt_keys", "eddsa:_default", pem_of(ed.get()));
  const auto signed_by = [&](const PrivateKey& key, const EVP_MD* digest, const std::string& head,
                             std::size_t number_bytes = 0) {
    const std::string message = message_of(head, kClaims);
    return message + "." + to_base64url(sign(key.get(), digest, message, number_bytes));
  };
  EXPECT_EQ(verify(signed_by(rsa, EVP_sha256(), R"({"alg":"RS256"})")).name, "ann");
  EXPECT_EQ(verify(signed_by(rsa, EVP_sha512(), R"({"alg":"RS512"})")).name, "ann");
  EXPECT_EQ(verify(signed_by(p256, EVP_sha256(), R"({"alg":"ES256"})", 32)).name, "ann");
  EXPECT_EQ(verify(signed_by(p384, EVP_sha384(), R"({"alg":"ES384","kid":"384"})", 48)).name, "ann");
  EXPECT_EQ(verify(signed_by(p521, EVP_sha512(), R"({"alg":"ES512","kid":"521"})", 66)).name, "ann");
  EXPECT_EQ(verify(signed_by(ed, nullptr, R"({"alg":"EdDSA"})")).name, "ann");
  // The algorithm, the curve and the form of the signature must be those of the key.
  EXPECT_THAT(refusal(signed_by(rsa, EVP_sha256(), R"({"alg":"RS512"})")), HasSubstr("Bad signature"));
  EXPECT_THAT(refusal(signed_by(p384, EVP_sha256(), R"({"alg":"ES256","kid":"384"})", 48)),
              HasSubstr("Bad signature"));
  EXPECT_THAT(refusal(signed_by(p256, EVP_sha256(), R"({"alg":"ES256"})")), HasSubstr("Bad signature"));
  // Another curve of the same size.
  const PrivateKey k256(EVP_EC_gen("secp256k1"), EVP_PKEY_free);
  config_.override_with("jwt_keys", "ec:k", pem_of(k256.get()));
  EXPECT_THAT(refusal(signed_by(k256, EVP_sha256(), R"({"alg":"ES256","kid":"k"})", 32)),
              HasSubstr("Bad signature"));
  // A public key is not a secret for HMAC.
  EXPECT_THAT(refusal(token(kClaims, R"({"alg":"HS256","kid":"384"})", pem_of(p384.get()))),
              HasSubstr("Unknown kid"));
}

TEST_F(JsonWebTokens, InvalidSettingsAreRefused) {
  const auto refused = [&](const char* section, const std::string& key, const std::string& value) {
    Config config;
    config.override_with(section, key, value);
    return error_of([&] { TokenVerifier verifier(config); });
  };
  EXPECT_THAT(refused("jwt_keys", "hmac:a", "?"),
              HasSubstr("[jwt_keys] hmac:a: A key for HMAC must be in base64."));
  EXPECT_THAT(refused("jwt_keys", "hmac:", "YQ=="), HasSubstr("expected hmac:ID"));
  EXPECT_THAT(refused("jwt_keys", "hmac", "YQ=="), HasSubstr("expected hmac:ID"));
  EXPECT_THAT(refused("jwt_keys", "dsa:a", "YQ=="), HasSubstr("expected hmac:ID"));
  EXPECT_THAT(refused("jwt_keys", "rsa:a", "YQ=="), HasSubstr("not a public key of the type `rsa`"));
  const PrivateKey ec(EVP_EC_gen("P-256"), EVP_PKEY_free);
  EXPECT_THAT(refused("jwt_keys", "rsa:a", pem_of(ec.get())),
              HasSubstr("not a public key of the type `rsa`"));
  for (const std::string claims : {"exp,", ",exp", "other", "{iss}", "{iss,me}", "{sub, \"x\"}",
                                   "{iss, \"\"}", "exp nbf", "{iss, \"a\"} exp", "{"})
    EXPECT_THAT(refused("jwt_auth", "required_claims", claims), HasSubstr("expected exp, nbf")) << claims;
  EXPECT_FALSE(TokenVerifier(Config()).has_keys());
}

}  // namespace
}  // namespace divan::api
