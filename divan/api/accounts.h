// The identity of a request: an administrator, who may do everything, a user with roles, or anonymous.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/api/json_web_tokens.h"
#include "divan/api/password_checks.h"
#include "divan/api/session_cookies.h"
#include "divan/base/config.h"
#include "divan/base/lru_map.h"
#include "divan/base/mutex.h"
#include "divan/base/rng.h"
#include "divan/http/basic_auth.h"
#include "divan/http/message.h"

namespace divan::api {

/// The only role with an underscore that a user's document may have: it may read the statistics and metrics
/// of a node.
inline constexpr std::string_view kMetricsRole = "_metrics";

/// Users with this role may use jobs and workers like administrators.
inline constexpr std::string_view kJobsRole = "jobs";

/// The authenticated user of a request.
struct User {
  std::string name;  // empty: anonymous
  bool admin = false;
  std::vector<std::string> roles = {};  // from the user's document; administrators have none and need none
  /// How the request was authenticated, in CouchDB's words; empty: anonymous.
  std::string_view authenticated = {};
  /// Another server has authenticated the user, who need not have a document.
  bool is_external = false;
  std::optional<std::int64_t> expires_s = {};  ///< when that ends, in seconds since 1970

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

  /// Reads [chttpd_auth] iterations, min_iterations, max_iterations, upgrade_hash_on_auth and timeout, and
  /// [chttpd_auth_lockout] mode, threshold and max_lifetime. Throws bad_request for an invalid value.
  void configure(const Config& config);

  /// Reads the keys of JSON Web Tokens and of reverse proxies that authenticate users: [jwt_keys],
  /// [jwt_auth], [chttpd_auth] proxy_use_secret and secret. Throws bad_request for an invalid value. To be
  /// called before the first request.
  void configure_identities(const Config& config);

  /// The secret of session cookies. To be called before the first request.
  void set_session_secret(std::string secret) { session_cookies_.emplace(std::move(secret)); }

  /// `password` is plain text, or a hash as CouchDB writes it: "-pbkdf2-KEY,SALT,ITERATIONS" (SHA-1),
  /// "-pbkdf2:sha256-KEY,SALT,ITERATIONS", or "-hashed-KEY,SALT" (the scheme `simple`). Throws bad_request
  /// for a malformed hash.
  void add_admin(const std::string& name, const std::string& password);

  /// Administrators are never looked up among the users, so that no user document can lock one out. The
  /// account of another user must be looked up for each request, so that a changed password, changed roles or
  /// a removed user take effect with the next one.
  bool is_admin(const std::string& name) const { return admins_.contains(name); }

  /// Returns true if an administrator has this name and password. Blocks while the password is hashed; for
  /// requests of administrators, who need not wait behind clients that guess passwords.
  bool is_admin_password(const std::string& name, std::string_view password) const;

  /// Authenticates a request by a password; `account` is the user's, if it exists and can log in. Throws
  /// unauthorized (401) for wrong credentials, forbidden (403) for a locked account.
  ///
  /// Returns nullopt if the password must first be compared with a hash, which is slow. `waiter.done` is then
  /// called, on any thread, when the same call would succeed or throw, or with the error if the check was
  /// refused. `address` is the client's.
  std::optional<User> authenticate(const http::Credentials& credentials, std::optional<Account> account,
                                   std::string_view address, PasswordWaiter waiter);

  /// Authenticates a request by its session; nullopt if that is not valid, or not any more.
  std::optional<User> authenticate(const Session& session, std::optional<Account> account) const;
  /// Authenticates a request by a JSON Web Token; nullopt if it has none, or no keys are configured. Throws
  /// as TokenVerifier::verify().
  std::optional<User> authenticate_token(const http::Request& request) const;
  bool uses_tokens() const { return tokens_ && tokens_->has_keys(); }
  bool uses_proxies() const { return !proxy_secret_.empty(); }
  /// Authenticates a request by the fields X-Auth-CouchDB-UserName, -Roles and -Token of a reverse proxy that
  /// knows the secret; nullopt if they are missing or the token is wrong.
  std::optional<User> authenticate_proxy(const http::Request& request) const;

  /// The value of the cookie of a session of this user that begins now.
  std::string new_session(const std::string& name, const std::optional<Account>& account) const;
  /// Returns true if the session should be replaced by a new one: a tenth of its time is over.
  bool is_to_be_renewed(const Session& session) const;

  /// To be held while a new password of a user is hashed for `user`, who may be anonymous. Administrators
  /// need no permit. Others share one, and anonymous ones another; throws service_unavailable (503) if it is
  /// held.
  std::unique_lock<Mutex> begin_hash(const User& user);

  /// Returns true if a user's hash has fewer iterations than new ones, or uses SHA-1, and is to be
  /// replaced when it has matched a password ([chttpd_auth] upgrade_hash_on_auth).
  bool needs_upgrade(const PasswordHash& hash) const {
    return upgrades_hashes_ &&
           (hash.digest == "SHA1" || hash.is_of_simple_hash || hash.iterations < user_iterations_);
  }
  /// Returns a permit to do so, unless it was tried in the last minute, or another hash is being replaced:
  /// the result then owns no lock.
  std::unique_lock<Mutex> begin_upgrade(const std::string& name);
  /// The hash that replaces it. It has the same salt, so that the user's sessions stay valid.
  PasswordHash upgraded_hash(std::string_view password, const PasswordHash& hash) const {
    return hash_password(password, user_iterations_, hash.salt);
  }

  /// Refuses all waiting requests, and later ones that would wait.
  void stop() { checks_.stop(); }

  PasswordCheckStats stats() const { return checks_.stats(); }

 private:
  struct Admin {
    PasswordHash hash;
    std::string identity;  // as password_identity()
  };

  static PasswordHash parse_hash(std::string_view text);
  // Identifies the user's stored password, for sessions.
  std::string password_identity(const std::string& name, const std::optional<Account>& account) const;
  std::int64_t now_s() const { return clock_.wall_ms() / 1000; }
  // Throws forbidden (403), in CouchDB's words, if it has too few or too many iterations for this server.
  void check_iterations(const PasswordHash& hash) const;
  // The hash with which passwords for unknown names are compared.
  PasswordHash placeholder() const;

  Rng& rng_;
  const Clock& clock_;
  std::map<std::string, Admin> admins_;
  int admin_iterations_ = 1;        // the maximum of all administrators' hashes
  const PasswordHash no_password_;  // matches no password; placeholder() sets its iterations
  std::atomic<int> user_iterations_ = kDefaultPasswordIterations;
  std::atomic<int> least_iterations_ = 1;  // of the hash of a user who logs in
  std::atomic<int> most_iterations_ = kMaxPasswordIterations;
  std::atomic<bool> upgrades_hashes_ = true;
  std::optional<SessionCookies> session_cookies_;
  std::optional<TokenVerifier> tokens_;
  std::string proxy_secret_;  // empty: proxies do not authenticate users
  std::atomic<std::int64_t> session_timeout_s_ = 600;
  PasswordChecks checks_;
  Mutex user_hash_{MutexRank::password_hash, "Accounts::user_hash_"};
  Mutex upgrade_{MutexRank::password_hash, "Accounts::upgrade_"};
  LruMap<MonotonicTime> upgrades_{10'000};  // the last tries, by user; protected by upgrade_
  Mutex anonymous_hash_{MutexRank::password_hash, "Accounts::anonymous_hash_"};
};

}  // namespace divan::api
