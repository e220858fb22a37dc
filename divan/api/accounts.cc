#include "divan/api/accounts.h"

#include <absl/cleanup/cleanup.h>

#include <charconv>
#include <mutex>

#include "divan/base/bytes.h"
#include "divan/base/digest.h"
#include "divan/base/error.h"
#include "divan/http/basic_auth.h"

namespace divan::api {
namespace {

// For passwords that are given in plain text: high enough to be slow, low enough for every start of the
// server.
constexpr int kIterations = 50'000;
constexpr std::size_t kMaxVerified = 1000;

}  // namespace

PasswordHash Accounts::parse_hash(std::string_view text) {
  const Error malformed = bad_request("A hashed password is malformed.");
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
  admins_[name] =
      password.starts_with("-pbkdf2") ? parse_hash(password) : hash_password(password, kIterations, rng_);
}

User Accounts::authenticate(std::optional<std::string_view> authorization) const {
  if (!authorization) return {};
  const auto credentials = http::parse_basic(*authorization);
  if (!credentials) throw unauthorized("Only Basic authentication is supported.");
  // An administrator's name is never looked for among the users: nothing there can lock one out.
  const auto admin = admins_.find(credentials->name);
  if (admin != admins_.end()) {
    check_password(*authorization, credentials->password, admin->second);
    return {credentials->name, true};
  }
  auto account = find_user_ ? find_user_(credentials->name) : std::nullopt;
  if (!account) throw unauthorized("Name or password is incorrect.");
  check_password(*authorization, credentials->password, account->password);
  return {credentials->name, false, std::move(account->roles)};
}

bool Accounts::is_verified(const std::string& digest, const PasswordHash& hash) const {
  std::shared_lock lock(mutex_);
  const auto found = verified_.find(digest);
  return found != verified_.end() && found->second == hash;
}

void Accounts::check_password(std::string_view authorization, std::string_view password,
                              const PasswordHash& hash) const {
  const std::string digest = sha256(authorization);
  if (is_verified(digest, hash)) return;
  const absl::Cleanup leave = [this] { --at_hashing_; };
  if (++at_hashing_ > kMaxAtHashing)
    throw Error(503, "service_unavailable", "Too many passwords are being checked; try again later.");
  hashing_.acquire();
  const absl::Cleanup release = [this] { hashing_.release(); };
  // A client's first requests come together: the first of them has done the work for the others.
  if (is_verified(digest, hash)) return;
  if (!is_password(password, hash)) throw unauthorized("Name or password is incorrect.");
  std::unique_lock lock(mutex_);
  if (verified_.size() >= kMaxVerified) verified_.clear();
  verified_[digest] = hash;
}

}  // namespace divan::api
