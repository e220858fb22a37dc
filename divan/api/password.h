// Passwords as they are kept: PBKDF2 hashes (RFC 8018), which are slow on purpose.
#pragma once

#include <string>
#include <string_view>

#include "divan/base/rng.h"

namespace divan::api {

/// The most rounds that a hash may ask for: some seconds of work.
inline constexpr int kMaxPasswordIterations = 10'000'000;

/// What a password is compared with. A value type.
struct PasswordHash {
  std::string digest;  ///< as OpenSSL names it: "SHA1", "SHA256"
  std::string key;     ///< the bytes; not empty
  std::string salt;
  int iterations = 0;  ///< 1 at least

  friend bool operator==(const PasswordHash&, const PasswordHash&) = default;
};

/// A new hash: of SHA-256, 32 bytes, with a random salt.
PasswordHash hash_password(std::string_view password, int iterations, Rng& rng);

/// Whether it is this password's hash. Takes the same time for every wrong password.
bool is_password(std::string_view password, const PasswordHash& hash);

}  // namespace divan::api
