// Sessions: a client that has logged in with a form sends a cookie instead of its password (`POST /_session`,
// https://docs.couchdb.org/en/stable/api/server/authn.html#cookie-authentication).
//
// The cookie has the user's name, the time of the login, and a code (HMAC-SHA-256, RFC 2104) over both. The
// key of the code is derived from a secret of the store and from the user's stored password: a cookie is
// valid on every server of the store, and invalid after the password has changed. Nothing is stored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "divan/base/config.h"

namespace divan::api {

inline constexpr std::string_view kSessionCookie = "AuthSession";

/// What a client's cookie contains; not verified: see SessionCookies::is_valid().
struct Session {
  std::string name;
  std::int64_t created_s = 0;  ///< seconds since 1970
  std::string code;
};

/// The session in a Cookie field (RFC 6265, section 4.2); nullopt if there is none, or an empty one. Throws
/// bad_request for a malformed one.
std::optional<Session> parse_session(std::string_view cookie_field);

/// Thread-safe.
class SessionCookies {
 public:
  explicit SessionCookies(std::string secret) : secret_(std::move(secret)) {}

  /// The value of a cookie. `password` identifies the user's stored password.
  std::string make(std::string_view name, std::int64_t now_s, std::string_view password) const;

  /// Returns true if the session was made by make() with this password, not longer than `timeout_s` ago.
  bool is_valid(const Session& session, std::string_view password, std::int64_t now_s,
                std::int64_t timeout_s) const;

 private:
  std::string code(std::string_view name, std::int64_t created_s, std::string_view password) const;

  const std::string secret_;
};

/// Throws bad_request if a cookie cannot have this domain.
void check_cookie_domain(std::string_view domain);

/// The timeout of sessions in seconds: [chttpd_auth] timeout.
std::int64_t session_timeout(const Config& config);

/// The value of a Set-Cookie field (RFC 6265, section 4.1) with the attributes that the settings request
/// ([chttpd_auth] allow_persistent_cookies, cookie_domain and same_site). With an empty `value` the client
/// removes the cookie. `secure`: the client must not send it without TLS. `now_s` in seconds since 1970.
std::string session_cookie_field(std::string_view value, const Config& config, bool secure,
                                 std::int64_t now_s);

}  // namespace divan::api
