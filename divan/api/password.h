// Stored passwords: PBKDF2 hashes (RFC 8018), which are slow by design. Those that CouchDB wrote before 1.3
// are read, too.
#pragma once

#include <string>
#include <string_view>

#include "divan/base/config.h"

namespace divan::api {

/// Maximum number of iterations of a hash: some seconds of work.
inline constexpr int kMaxPasswordIterations = 10'000'000;

/// The iterations of new hashes unless configured: the default of CouchDB since 3.4.
inline constexpr int kDefaultPasswordIterations = 600'000;

/// The iterations of new hashes: [chttpd_auth] iterations. Throws bad_request for an invalid value.
int password_iterations(const Config& config);

/// A hashed password. A value type.
struct PasswordHash {
  std::string digest;  ///< as OpenSSL names it: "SHA1", "SHA256"
  std::string key;     ///< binary; not empty
  std::string salt;
  int iterations = 0;  ///< 0: one SHA-1 of the password and the salt (CouchDB's scheme `simple`)
  /// The hash is that of a hash by the scheme `simple`, in hexadecimal digits (CouchDB's `simple+pbkdf2`).
  bool is_of_simple_hash = false;

  friend bool operator==(const PasswordHash&, const PasswordHash&) = default;
};

/// Hashes a password with SHA-256 to 32 bytes. A new password needs a new random salt.
PasswordHash hash_password(std::string_view password, int iterations, std::string salt);

/// The result of a comparison and the iterations that it took.
struct PasswordComparison {
  bool equal = false;
  int iterations = 0;
};

/// Compares a password with a hash. A wrong password takes at least `min_iterations`, so that the time does
/// not reveal whether the hash is a user's, an administrator's or a placeholder for an unknown name.
PasswordComparison compare_password(std::string_view password, const PasswordHash& hash,
                                    int min_iterations = 0);

}  // namespace divan::api
