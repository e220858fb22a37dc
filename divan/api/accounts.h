// Who a request is from: an administrator, who may do everything, a user with roles, or nobody in particular.
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
  /// Returns the account of a user as it is now; nullopt if there is none, or none that may log in. May throw
  /// divan::Error, which becomes the request's answer.
  using FindUser = std::function<std::optional<Account>(std::string_view name)>;

  Accounts(Rng& rng, const Clock& clock, PasswordChecks::Options options = {});

  /// Reads [chttpd_auth] iterations and [chttpd_auth_lockout] mode, threshold and max_lifetime. Throws
  /// bad_request for a bad value.
  void configure(const Config& config);

  /// `password` as it is, or as CouchDB writes hashed ones: "-pbkdf2-KEY,SALT,ITERATIONS" (SHA-1) or
  /// "-pbkdf2:sha256-KEY,SALT,ITERATIONS". Throws bad_request for a malformed hash.
  void add_admin(const std::string& name, const std::string& password);

  /// Where those are found who are no administrators. It is called for each of their requests, so that a
  /// changed password, a role or a removed user counts from the next request on.
  void look_up_users(FindUser find) { find_user_ = std::move(find); }

  /// Reads a request's Authorization field. Throws unauthorized (401) for wrong credentials, bad_request for
  /// malformed ones, forbidden (403) for a locked account. Nobody without a field, or if its
  /// scheme is not Basic.
  ///
  /// Returns nullopt if the password has to be compared with a hash first, which is slow: then `waiter.done`
  /// is called, on any thread, when the same call again would succeed or throw, or with why it was refused.
  /// `address` is the client's.
  std::optional<User> authenticate(std::optional<std::string_view> authorization, std::string_view address,
                                   PasswordWaiter waiter);

  /// Refuses all requests that wait, and those that would.
  void stop() { checks_.stop(); }

  PasswordCheckStats stats() const { return checks_.stats(); }

 private:
  static PasswordHash parse_hash(std::string_view text);
  // What the passwords of unknown names are compared with.
  PasswordHash placeholder() const;

  Rng& rng_;
  std::map<std::string, PasswordHash> admins_;
  int admin_iterations_ = 1;  // the most of an administrator's hash
  FindUser find_user_;
  const PasswordHash nobody_;  // no password's; its iterations are placeholder()'s to set
  std::atomic<int> user_iterations_ = kDefaultPasswordIterations;
  PasswordChecks checks_;
};

}  // namespace divan::api
