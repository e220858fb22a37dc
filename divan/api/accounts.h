// The identity of a request: an administrator, who may do everything, a user with roles, or anonymous.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/api/password_checks.h"
#include "divan/base/config.h"

namespace divan::api {

/// The authenticated user of a request.
struct User {
  std::string name;  // empty: anonymous
  bool admin = false;
  std::vector<std::string> roles = {};  // from the user's document; administrators have none and need none

  bool has_role(std::string_view role) const {
    return std::find(roles.begin(), roles.end(), role) != roles.end();
  }
};

/// The password and roles of a user who can log in.
struct Account {
  PasswordHash password;
  std::vector<std::string> roles;
};

/// The administrators with their passwords, and the checks of all passwords. Thread-safe after the last
/// add_admin().
class Accounts {
 public:
  Accounts(Rng& rng, const Clock& clock, PasswordChecks::Options options = {});

  /// Reads [chttpd_auth] iterations and [chttpd_auth_lockout] mode, threshold and max_lifetime. Throws
  /// bad_request for an invalid value.
  void configure(const Config& config);

  /// `password` is plain text, or a hash as CouchDB writes it: "-pbkdf2-KEY,SALT,ITERATIONS" (SHA-1) or
  /// "-pbkdf2:sha256-KEY,SALT,ITERATIONS". Throws bad_request for a malformed hash.
  void add_admin(const std::string& name, const std::string& password);

  /// The name in an Authorization field, unless it is that of an administrator: the account of this user must
  /// be looked up for each request, so that a changed password, changed roles or a removed user take effect
  /// with the next one. Throws bad_request for malformed credentials.
  std::optional<std::string> user_of(std::optional<std::string_view> authorization) const;

  /// Authenticates a request by its Authorization field; `account` is that of user_of(), if it exists and the
  /// user can log in. Returns an anonymous user if there is no field, or if its scheme is not Basic. Throws
  /// unauthorized (401) for wrong credentials, bad_request for malformed ones, forbidden (403) for a locked
  /// account.
  ///
  /// Returns nullopt if the password must first be compared with a hash, which is slow. `waiter.done` is then
  /// called, on any thread, when the same call would succeed or throw, or with the error if the check was
  /// refused. `address` is the client's.
  std::optional<User> authenticate(std::optional<std::string_view> authorization,
                                   std::optional<Account> account, std::string_view address,
                                   PasswordWaiter waiter);

  /// Refuses all waiting requests, and later ones that would wait.
  void stop() { checks_.stop(); }

  PasswordCheckStats stats() const { return checks_.stats(); }

 private:
  static PasswordHash parse_hash(std::string_view text);
  // The hash with which passwords for unknown names are compared.
  PasswordHash placeholder() const;

  Rng& rng_;
  std::map<std::string, PasswordHash> admins_;
  int admin_iterations_ = 1;        // the maximum of all administrators' hashes
  const PasswordHash no_password_;  // matches no password; placeholder() sets its iterations
  std::atomic<int> user_iterations_ = kDefaultPasswordIterations;
  PasswordChecks checks_;
};

}  // namespace divan::api
