// Who a request is from: an administrator, who may do everything, a user with roles, or nobody in particular.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <semaphore>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "divan/api/password.h"

namespace divan::api {

/// Who a request is from.
struct User {
  std::string name;  // empty: nobody in particular
  bool admin = false;
  std::vector<std::string> roles = {};  // of a user's document; administrators have none and need none

  bool has_role(std::string_view role) const {
    return std::find(roles.begin(), roles.end(), role) != roles.end();
  }
};

/// What is known of somebody who may log in.
struct Account {
  PasswordHash password;
  std::vector<std::string> roles;
};

/// The administrators with their passwords, and the way to everybody else's. Thread-safe after the last
/// add_admin() and look_up_users().
class Accounts {
 public:
  /// Answers the account of a user as it is now; nothing if there is none, or none that may log in. May throw
  /// divan::Error, which becomes the request's answer.
  using FindUser = std::function<std::optional<Account>(std::string_view name)>;

  explicit Accounts(Rng& rng) : rng_(rng) {}

  /// `password` as it is, or as CouchDB writes hashed ones: "-pbkdf2-KEY,SALT,ITERATIONS" (SHA-1) or
  /// "-pbkdf2:sha256-KEY,SALT,ITERATIONS". Throws bad_request for a malformed hash.
  void add_admin(const std::string& name, const std::string& password);

  /// Where those are found who are no administrators. It is asked at each of their requests, so that a
  /// changed password, a role or a removed user counts from the next request on.
  void look_up_users(FindUser find) { find_user_ = std::move(find); }

  /// Reads a request's Authorization field. Throws unauthorized (401) for wrong credentials, bad_request for
  /// malformed ones, 503 if too many passwords are being checked already. Without a field: nobody.
  User authenticate(std::optional<std::string_view> authorization) const;

 private:
  // A password hash is slow on purpose: so many are computed at once, and so many requests wait for that.
  static constexpr std::ptrdiff_t kMaxHashing = 2;
  static constexpr std::size_t kMaxAtHashing = 16;

  static PasswordHash parse_hash(std::string_view text);
  void check_password(std::string_view authorization, std::string_view password,
                      const PasswordHash& hash) const;

  bool is_verified(const std::string& digest, const PasswordHash& hash) const;

  Rng& rng_;
  // Who takes part in hashing, waiting included: the requests of others shall find a thread.
  mutable std::counting_semaphore<> hashing_{kMaxHashing};
  mutable std::atomic<std::size_t> at_hashing_ = 0;
  std::map<std::string, PasswordHash> admins_;
  FindUser find_user_;
  // What was found right, since a password hash is slow on purpose: digests of fields, each with the hash
  // that it was compared with, so that it counts no longer than that hash does.
  mutable std::shared_mutex mutex_;
  mutable std::map<std::string, PasswordHash> verified_;
};

}  // namespace divan::api
