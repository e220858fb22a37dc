// The Basic authentication scheme (RFC 7617).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace divan::http {

struct Credentials {
  std::string name;
  std::string password;

  friend bool operator==(const Credentials&, const Credentials&) = default;
};

/// Parses an Authorization field's value. Returns nullopt for any other scheme; throws bad_request if the
/// scheme is Basic and the credentials are malformed (not base64, or without a colon).
std::optional<Credentials> parse_basic(std::string_view field);

/// The Authorization field's value for these credentials. The name must not contain a colon.
std::string basic_authorization(const Credentials& credentials);

}  // namespace divan::http
