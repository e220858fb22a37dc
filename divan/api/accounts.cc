#include "divan/api/accounts.h"

#include <fmt/core.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/base/digest.h"
#include "divan/base/error.h"
#include "divan/http/field_list.h"

namespace divan::api {
namespace {

// For passwords given in plain text: slow to guess, but fast enough for each start of the server.
constexpr int kAdminIterations = 50'000;
constexpr std::string_view kSimplePrefix = "-hashed-";
constexpr std::size_t kKeyBytes = 32;

// CouchDB's names.
constexpr std::string_view kByPassword = "default", kByCookie = "cookie", kByToken = "jwt",
                           kByProxy = "proxy";

// A user whom another server has authenticated. The role _admin makes an administrator.
User external_user(std::string name, std::vector<std::string> roles, std::string_view authenticated) {
  User user{std::move(name), false, std::move(roles), authenticated, true};
  user.admin = std::erase(user.roles, "_admin") > 0;
  return user;
}

bool has_duplicates(const http::Request& request) {
  constexpr std::array<std::string_view, 3> kFields = {"X-Auth-CouchDB-UserName", "X-Auth-CouchDB-Roles",
                                                       "X-Auth-CouchDB-Token"};
  const auto fields = request.headers();
  return std::ranges::any_of(kFields, [&](std::string_view name) {
    return std::ranges::count_if(
               fields, [&](const auto& field) { return http::equal_ignoring_case(field.first, name); }) > 1;
  });
}

LockoutSettings lockout_settings(const Config& config) {
  constexpr const char* kSection = "chttpd_auth_lockout";
  LockoutSettings settings;
  const std::string mode = config.get(kSection, "mode", "warn");
  if (mode == "off") {
    settings.mode = LockoutSettings::Mode::off;
  } else if (mode == "enforce") {
    settings.mode = LockoutSettings::Mode::enforce;
  } else if (mode != "warn") {
    throw bad_request(
        fmt::format("Setting [{}] mode is `{}`; expected one of off, warn, enforce.", kSection, mode));
  }
  settings.threshold = static_cast<std::size_t>(config.get_int(
      kSection, "threshold", static_cast<std::int64_t>(settings.threshold), 1, kMaxLockoutThreshold));
  settings.lifetime = std::chrono::milliseconds(
      config.get_int(kSection, "max_lifetime", settings.lifetime.count(), 1, kMaxLockoutLifetimeMs));
  return settings;
}

}  // namespace

Accounts::Accounts(Rng& rng, const Clock& clock, PasswordChecks::Options options)
    : rng_(rng),
      clock_(clock),
      no_password_{"SHA256", rng.bytes(kKeyBytes), rng.uuid(), 0},
      checks_(clock, std::move(options)) {}

void Accounts::configure(const Config& config) {
  const auto iterations = password_iterations(config);
  const auto timeout = session_timeout(config);
  checks_.configure(lockout_settings(config));
  user_iterations_ = iterations;
  least_iterations_ =
      static_cast<int>(config.get_int("chttpd_auth", "min_iterations", 1, 1, kMaxPasswordIterations));
  most_iterations_ = static_cast<int>(
      config.get_int("chttpd_auth", "max_iterations", kMaxPasswordIterations, 1, kMaxPasswordIterations));
  upgrades_hashes_ = config.get_bool("chttpd_auth", "upgrade_hash_on_auth", true);
  session_timeout_s_ = timeout;
}

void Accounts::configure_identities(const Config& config) {
  tokens_.emplace(config);
  constexpr const char* kSection = "chttpd_auth";
  if (!config.get_bool(kSection, "proxy_use_secret", false)) return;
  proxy_secret_ = config.get(kSection, "secret", "");
  if (proxy_secret_.empty()) throw bad_request("[chttpd_auth] proxy_use_secret needs a `secret`.");
}

PasswordHash Accounts::parse_hash(std::string_view text) {
  const Error malformed = bad_request(
      "A hashed password is malformed; expected -pbkdf2-KEY,SALT,ITERATIONS, "
      "-pbkdf2:sha256-KEY,SALT,ITERATIONS or -hashed-KEY,SALT.");
  if (text.starts_with(kSimplePrefix)) {
    text.remove_prefix(kSimplePrefix.size());
    const std::size_t comma = text.find(',');
    const auto key = from_hex(text.substr(0, comma));
    if (comma == std::string_view::npos || !key || key->empty()) throw malformed;
    return {"SHA1", *key, std::string(text.substr(comma + 1)), 0};
  }
  PasswordHash hash;
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
  const bool is_hashed = password.starts_with("-pbkdf2") || password.starts_with(kSimplePrefix);
  auto hash = is_hashed ? parse_hash(password) : hash_password(password, kAdminIterations, rng_.uuid());
  admin_iterations_ = std::max(admin_iterations_, hash.iterations);
  // Not the hash of a password in plain text: its salt differs from server to server.
  admins_[name] = {std::move(hash), sha256(password)};
}

void Accounts::check_iterations(const PasswordHash& hash) const {
  if (hash.iterations == 0) return;
  if (hash.iterations < least_iterations_) throw forbidden("Iteration count is too low for this server");
  if (hash.iterations > most_iterations_) throw forbidden("Iteration count is too high for this server");
}

PasswordHash Accounts::placeholder() const {
  PasswordHash hash = no_password_;
  hash.iterations = std::max<int>(user_iterations_, admin_iterations_);
  return hash;
}

bool Accounts::is_admin_password(const std::string& name, std::string_view password) const {
  const auto admin = admins_.find(name);
  return admin != admins_.end() && compare_password(password, admin->second.hash).equal;
}

std::optional<User> Accounts::authenticate(const http::Credentials& credentials,
                                           std::optional<Account> account, std::string_view address,
                                           PasswordWaiter waiter) {
  const auto admin = admins_.find(credentials.name);
  const PasswordHash unknown = placeholder();
  const PasswordHash& hash =
      admin != admins_.end() ? admin->second.hash : (account ? account->password : unknown);
  const auto right = checks_.check(
      {credentials.name, credentials.password, address, hash, unknown.iterations}, std::move(waiter));
  if (!right) return std::nullopt;
  if (!*right) throw unauthorized("Name or password is incorrect.");
  if (admin != admins_.end()) return User{credentials.name, true, {}, kByPassword};
  check_iterations(account->password);
  return User{credentials.name, false, std::move(account->roles), kByPassword};
}

std::optional<User> Accounts::authenticate(const Session& session, std::optional<Account> account) const {
  if (!account && !is_admin(session.name)) return std::nullopt;
  DIVAN_CHECK(session_cookies_, "sessions have no secret");
  if (!session_cookies_->is_valid(session, password_identity(session.name, account), now_s(),
                                  session_timeout_s_))
    return std::nullopt;
  const bool admin = is_admin(session.name);
  return User{session.name, admin, admin ? std::vector<std::string>() : std::move(account->roles), kByCookie};
}

std::optional<User> Accounts::authenticate_token(const http::Request& request) const {
  constexpr std::string_view kScheme = "Bearer ";
  const auto field = request.header("Authorization").value_or("");
  if (!tokens_ || !tokens_->has_keys() ||
      !http::equal_ignoring_case(field.substr(0, kScheme.size()), kScheme))
    return std::nullopt;
  auto verified = tokens_->verify(http::trim(field.substr(kScheme.size())), now_s());
  User user = external_user(std::move(verified.name), std::move(verified.roles), kByToken);
  user.expires_s = verified.expires_s;
  return user;
}

std::optional<User> Accounts::authenticate_proxy(const http::Request& request) const {
  // A field that is there twice may be the client's own, which the proxy has not removed.
  if (!proxy_secret_.empty() && has_duplicates(request)) return std::nullopt;
  const auto name = request.header("X-Auth-CouchDB-UserName");
  const auto token = from_hex(request.header("X-Auth-CouchDB-Token").value_or(""));
  if (proxy_secret_.empty() || !name || name->empty() || !is_utf8(*name) || !token) return std::nullopt;
  const std::string expected = hmac_sha256(proxy_secret_, *name);
  if (token->size() != expected.size() || CRYPTO_memcmp(token->data(), expected.data(), expected.size()) != 0)
    return std::nullopt;
  std::vector<std::string> roles;
  for (const auto role : http::split_list(request.header("X-Auth-CouchDB-Roles").value_or(""))) {
    if (is_utf8(role)) roles.emplace_back(role);
  }
  return external_user(std::string(*name), std::move(roles), kByProxy);
}

std::string Accounts::new_session(const std::string& name, const std::optional<Account>& account) const {
  DIVAN_CHECK(session_cookies_, "sessions have no secret");
  return session_cookies_->make(name, now_s(), password_identity(name, account));
}

bool Accounts::is_to_be_renewed(const Session& session) const {
  return now_s() - session.created_s > session_timeout_s_ / 10;
}

std::unique_lock<Mutex> Accounts::begin_hash(const User& user) {
  if (user.admin) return {};
  std::unique_lock permit(user.name.empty() ? anonymous_hash_ : user_hash_, std::try_to_lock);
  if (!permit) throw Error(503, "service_unavailable", "Another user's password is being hashed. Try again.");
  return permit;
}

std::unique_lock<Mutex> Accounts::begin_upgrade(const std::string& name) {
  std::unique_lock permit(upgrade_, std::try_to_lock);
  if (!permit) return {};
  const auto now = clock_.now();
  const MonotonicTime* last = upgrades_.touch(name);
  if (last != nullptr && now < *last + std::chrono::minutes(1)) return {};
  upgrades_[name] = now;
  return permit;
}

std::string Accounts::password_identity(const std::string& name,
                                        const std::optional<Account>& account) const {
  if (const auto admin = admins_.find(name); admin != admins_.end()) return admin->second.identity;
  DIVAN_CHECK(account, "a session of an unknown user");
  // A new password has a new salt; a stronger hash of the same password has the same.
  return to_hex(account->password.salt);
}

}  // namespace divan::api
