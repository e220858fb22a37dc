#include "divan/api/accounts.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <charconv>
#include <mutex>

#include "divan/base/bytes.h"
#include "divan/base/error.h"

namespace divan::api {
namespace {

// For passwords that are given in plain text: high enough to be slow, low enough for every start of the
// server.
constexpr int kIterations = 50'000;
constexpr std::size_t kMaxVerified = 1000;

std::string derive(std::string_view password, const std::string& salt, int iterations,
                   const std::string& digest, std::size_t size) {
  std::string key(size, '\0');
  const int ok = PKCS5_PBKDF2_HMAC(
      password.data(), static_cast<int>(password.size()), reinterpret_cast<const unsigned char*>(salt.data()),
      static_cast<int>(salt.size()), iterations, EVP_get_digestbyname(digest.c_str()), static_cast<int>(size),
      reinterpret_cast<unsigned char*>(key.data()));
  if (ok != 1) throw internal_error("OpenSSL could not hash a password.");
  return key;
}

std::string sha256(std::string_view text) {
  std::string digest(32, '\0');
  EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr, EVP_sha256(),
             nullptr);
  return digest;
}

}  // namespace

Accounts::Hash Accounts::parse_hash(std::string_view text) {
  const Error malformed = bad_request("A hashed password is malformed.");
  Hash hash;
  constexpr std::string_view kSha256 = "-pbkdf2:sha256-", kSha1 = "-pbkdf2-";
  hash.digest = text.starts_with(kSha256) ? "SHA256" : "SHA1";
  text.remove_prefix(text.starts_with(kSha256) ? kSha256.size() : kSha1.size());
  const std::size_t first = text.find(','), second = text.rfind(',');
  if (first == std::string_view::npos || first == second) throw malformed;
  const auto key = from_hex(text.substr(0, first));
  const std::string_view count = text.substr(second + 1);
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), hash.iterations);
  if (!key || key->empty() || error != std::errc() || end != count.data() + count.size() ||
      hash.iterations < 1) {
    throw malformed;
  }
  hash.key = *key;
  hash.salt = text.substr(first + 1, second - first - 1);
  return hash;
}

void Accounts::add_admin(const std::string& name, const std::string& password) {
  if (password.starts_with("-pbkdf2")) {
    admins_[name] = parse_hash(password);
    return;
  }
  Hash hash;
  hash.digest = "SHA256";
  hash.salt = rng_.uuid();
  hash.iterations = kIterations;
  hash.key = derive(password, hash.salt, hash.iterations, hash.digest, 32);
  admins_[name] = hash;
}

User Accounts::authenticate(std::optional<std::string_view> authorization) const {
  if (!authorization) return {};
  const std::string digest = sha256(*authorization);
  {
    std::shared_lock lock(mutex_);
    const auto found = verified_.find(digest);
    if (found != verified_.end()) return {found->second, true};
  }
  const auto credentials = http::parse_basic(*authorization);
  if (!credentials) throw unauthorized("Only Basic authentication is supported.");
  if (!is_right(*credentials)) throw unauthorized("Name or password is incorrect.");
  std::unique_lock lock(mutex_);
  if (verified_.size() >= kMaxVerified) verified_.clear();
  verified_[digest] = credentials->name;
  return {credentials->name, true};
}

bool Accounts::is_right(const http::Credentials& credentials) const {
  const auto found = admins_.find(credentials.name);
  if (found == admins_.end()) return false;
  const Hash& hash = found->second;
  const std::string key =
      derive(credentials.password, hash.salt, hash.iterations, hash.digest, hash.key.size());
  return CRYPTO_memcmp(key.data(), hash.key.data(), key.size()) == 0;
}

}  // namespace divan::api
