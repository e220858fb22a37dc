// Passwords as they are kept: PBKDF2 hashes (RFC 8018), which are slow on purpose.
#pragma once

#include <string>
#include <string_view>

#include "divan/base/config.h"
#include "divan/base/rng.h"

namespace divan::api {

/// The most iterations that a hash may ask for: some seconds of work.
inline constexpr int kMaxPasswordIterations = 10'000'000;

/// The iterations of new hashes without a setting: CouchDB's, from 3.4 on.
inline constexpr int kDefaultPasswordIterations = 600'000;

/// The iterations of new hashes: [chttpd_auth] iterations. Throws bad_request for a bad value.
int password_iterations(const Config& config);

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

/// The outcome of a comparison and the iterations that it took.
struct PasswordComparison {
  bool equal = false;
  int iterations = 0;
};

/// Compares a password with a hash. A wrong password takes at least `min_iterations`, so that its time does
/// not show whether the hash is a user's, an administrator's or a placeholder for an unknown name.
PasswordComparison compare_password(std::string_view password, const PasswordHash& hash,
                                    int min_iterations = 0);

/// True if it is this password's hash. Takes the same time for every wrong password.
bool is_password(std::string_view password, const PasswordHash& hash);

}  // namespace divan::api
