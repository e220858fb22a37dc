// Who may do what. Today there are administrators, who may do everything, and everybody else, who may ask
// whether the server is up.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "divan/base/rng.h"
#include "divan/http/basic_auth.h"

namespace divan::api {

/// Who a request is from.
struct User {
  std::string name;  // empty: nobody in particular
  bool admin = false;
};

/// The administrators and their passwords, kept as PBKDF2 hashes. Thread-safe after the last add_admin().
class Accounts {
 public:
  explicit Accounts(Rng& rng) : rng_(rng) {}

  /// `password` as it is, or as CouchDB writes hashed ones: "-pbkdf2-KEY,SALT,ITERATIONS" (SHA-1) or
  /// "-pbkdf2:sha256-KEY,SALT,ITERATIONS". Throws bad_request for a malformed hash.
  void add_admin(const std::string& name, const std::string& password);

  /// Reads a request's Authorization field. Throws unauthorized (401) for wrong credentials, bad_request for
  /// malformed ones. Without a field: nobody.
  User authenticate(std::optional<std::string_view> authorization) const;

 private:
  struct Hash {
    std::string digest;  // "SHA1" or "SHA256"
    std::string key;
    std::string salt;
    int iterations = 0;
  };

  static Hash parse_hash(std::string_view text);
  bool is_right(const http::Credentials& credentials) const;

  Rng& rng_;
  std::map<std::string, Hash> admins_;
  // Digests of fields that were found right, since a password hash is slow on purpose.
  mutable std::shared_mutex mutex_;
  mutable std::map<std::string, std::string> verified_;  // digest → name
};

}  // namespace divan::api
