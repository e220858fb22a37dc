#include "divan/api/session_cookies.h"

#include <fmt/core.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <cctype>

#include "divan/base/bytes.h"
#include "divan/base/digest.h"
#include "divan/base/error.h"
#include "divan/http/field_list.h"
#include "divan/http/serializer.h"

namespace divan::api {
namespace {

constexpr std::size_t kCodeBytes = 32;
constexpr std::size_t kTimeBytes = 8;

// The value of the first cookie of this name; nullopt without one.
std::optional<std::string_view> find_cookie(std::string_view field, std::string_view name) {
  while (!field.empty()) {
    const std::size_t end = std::min(field.find(';'), field.size());
    const auto pair = http::trim(field.substr(0, end));
    const std::size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == name) {
      const auto value = pair.substr(equals + 1);
      const bool quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
      return quoted ? value.substr(1, value.size() - 2) : value;
    }
    field.remove_prefix(std::min(end + 1, field.size()));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Session> parse_session(std::string_view cookie_field) {
  const auto value = find_cookie(cookie_field, kSessionCookie);
  if (!value || value->empty()) return std::nullopt;
  const auto bytes = from_base64url(*value);
  if (!bytes || bytes->size() <= kCodeBytes + kTimeBytes)
    throw bad_request("Malformed AuthSession cookie. Please clear your cookies.");
  const std::string_view view = *bytes;
  return Session{.name = std::string(view.substr(kCodeBytes + kTimeBytes)),
                 .created_s = static_cast<std::int64_t>(read_u64(view.substr(kCodeBytes))),
                 .code = std::string(view.substr(0, kCodeBytes))};
}

std::string SessionCookies::code(std::string_view name, std::int64_t created_s,
                                 std::string_view password) const {
  std::string message;
  append_u64(message, static_cast<std::uint64_t>(created_s));
  message += name;
  return hmac_sha256(hmac_sha256(secret_, password), message);
}

std::string SessionCookies::make(std::string_view name, std::int64_t now_s, std::string_view password) const {
  std::string bytes = code(name, now_s, password);
  append_u64(bytes, static_cast<std::uint64_t>(now_s));
  bytes += name;
  return to_base64url(bytes);
}

bool SessionCookies::is_valid(const Session& session, std::string_view password, std::int64_t now_s,
                              std::int64_t timeout_s) const {
  const std::string expected = code(session.name, session.created_s, password);
  if (session.code.size() != expected.size() ||
      CRYPTO_memcmp(session.code.data(), expected.data(), expected.size()) != 0)
    return false;
  // The clocks of servers differ, and a clock may be set back: such a session lasts up to twice as long.
  return session.created_s > now_s - timeout_s && session.created_s < now_s + timeout_s;
}

void check_cookie_domain(std::string_view domain) {
  const bool valid = std::ranges::all_of(
      domain, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-'; });
  if (!valid) throw bad_request("Setting [chttpd_auth] cookie_domain is not the name of a domain.");
}

std::int64_t session_timeout(const Config& config) {
  return config.get_int("chttpd_auth", "timeout", 600, 1, INT64_MAX);
}

std::string session_cookie_field(std::string_view value, const Config& config, bool secure,
                                 std::int64_t now_s) {
  std::string field = fmt::format("{}={}; Path=/", kSessionCookie, value);
  if (value.empty()) {
    field += "; Max-Age=0";
  } else if (config.get_bool("chttpd_auth", "allow_persistent_cookies", true)) {
    // Some clients, such as nano, know only the older attribute Expires.
    const auto timeout_s = session_timeout(config);
    field += fmt::format("; Expires={}; Max-Age={}", http::http_date(now_s + timeout_s), timeout_s);
  }
  field += "; HttpOnly";
  if (secure) field += "; Secure";
  if (const auto domain = config.get("chttpd_auth", "cookie_domain", ""); !domain.empty())
    field += fmt::format("; Domain={}", domain);
  if (const auto same_site = config.get("chttpd_auth", "same_site", ""); !same_site.empty())
    field += fmt::format("; SameSite={}", same_site);
  return field;
}

}  // namespace divan::api
