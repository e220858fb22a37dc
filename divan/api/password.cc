#include "divan/api/password.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "divan/base/bytes.h"
#include "divan/base/error.h"

namespace divan::api {
namespace {

constexpr std::size_t kKeyBytes = 32;

std::string simple_hash(std::string_view password, const std::string& salt) {
  const std::string text = std::string(password) + salt;
  std::string key(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  if (EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(key.data()), &size, EVP_sha1(),
                 nullptr) != 1)
    throw internal_error("OpenSSL could not hash a password.");
  key.resize(size);
  return key;
}

std::string derive(std::string_view password, const PasswordHash& hash, std::size_t size) {
  if (hash.iterations == 0) return simple_hash(password, hash.salt);
  const std::string simple = hash.is_of_simple_hash ? to_hex(simple_hash(password, hash.salt)) : "";
  if (hash.is_of_simple_hash) password = simple;
  std::string key(size, '\0');
  const int ok = PKCS5_PBKDF2_HMAC(password.data(), static_cast<int>(password.size()),
                                   reinterpret_cast<const unsigned char*>(hash.salt.data()),
                                   static_cast<int>(hash.salt.size()), hash.iterations,
                                   EVP_get_digestbyname(hash.digest.c_str()), static_cast<int>(size),
                                   reinterpret_cast<unsigned char*>(key.data()));
  if (ok != 1) throw internal_error("OpenSSL could not hash a password.");
  return key;
}

}  // namespace

int password_iterations(const Config& config) {
  return static_cast<int>(
      config.get_int("chttpd_auth", "iterations", kDefaultPasswordIterations, 1, kMaxPasswordIterations));
}

PasswordHash hash_password(std::string_view password, int iterations, std::string salt) {
  PasswordHash hash{"SHA256", {}, std::move(salt), iterations};
  hash.key = derive(password, hash, kKeyBytes);
  return hash;
}

PasswordComparison compare_password(std::string_view password, const PasswordHash& hash, int min_iterations) {
  const std::string key = derive(password, hash, hash.key.size());
  if (key.size() == hash.key.size() && CRYPTO_memcmp(key.data(), hash.key.data(), key.size()) == 0)
    return {true, hash.iterations};
  if (hash.iterations >= min_iterations) return {false, hash.iterations};
  // The rest of the work, to take the same time.
  derive(password, {"SHA256", {}, hash.salt, min_iterations - hash.iterations}, kKeyBytes);
  return {false, min_iterations};
}

}  // namespace divan::api
