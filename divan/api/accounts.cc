#include "divan/api/accounts.h"

#include <fmt/core.h>

#include <charconv>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/http/basic_auth.h"

namespace divan::api {
namespace {

// For passwords given in plain text: slow to guess, but fast enough for each start of the server.
constexpr int kAdminIterations = 50'000;
constexpr std::size_t kKeyBytes = 32;

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
      no_password_{"SHA256", rng.bytes(kKeyBytes), rng.uuid(), 0},
      checks_(clock, std::move(options)) {}

void Accounts::configure(const Config& config) {
  const auto iterations = password_iterations(config);
  checks_.configure(lockout_settings(config));
  user_iterations_ = iterations;
}

PasswordHash Accounts::parse_hash(std::string_view text) {
  const Error malformed = bad_request(
      "A hashed password is malformed; expected -pbkdf2-KEY,SALT,ITERATIONS or "
      "-pbkdf2:sha256-KEY,SALT,ITERATIONS.");
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
  auto hash = password.starts_with("-pbkdf2") ? parse_hash(password)
                                              : hash_password(password, kAdminIterations, rng_);
  admin_iterations_ = std::max(admin_iterations_, hash.iterations);
  admins_[name] = std::move(hash);
}

PasswordHash Accounts::placeholder() const {
  PasswordHash hash = no_password_;
  hash.iterations = std::max<int>(user_iterations_, admin_iterations_);
  return hash;
}

std::optional<std::string> Accounts::user_of(std::optional<std::string_view> authorization) const {
  // As in CouchDB, an unknown scheme means no credentials.
  const auto credentials = authorization ? http::parse_basic(*authorization) : std::nullopt;
  // The name of an administrator is never looked up among the users, so that no user document can lock one
  // out.
  if (!credentials || admins_.contains(credentials->name)) return std::nullopt;
  return credentials->name;
}

std::optional<User> Accounts::authenticate(std::optional<std::string_view> authorization,
                                           std::optional<Account> account, std::string_view address,
                                           PasswordWaiter waiter) {
  const auto credentials = authorization ? http::parse_basic(*authorization) : std::nullopt;
  if (!credentials) return User{};
  const auto admin = admins_.find(credentials->name);
  const PasswordHash unknown = placeholder();
  const PasswordHash& hash = admin != admins_.end() ? admin->second : (account ? account->password : unknown);
  const auto right = checks_.check(
      {credentials->name, credentials->password, address, hash, unknown.iterations}, std::move(waiter));
  if (!right) return std::nullopt;
  if (!*right) throw unauthorized("Name or password is incorrect.");
  if (admin != admins_.end()) return User{credentials->name, true};
  return User{credentials->name, false, std::move(account->roles)};
}

}  // namespace divan::api
