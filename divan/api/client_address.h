// The address of a request's client, which may be behind reverse proxies.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/http/message.h"

namespace divan::api {

/// The reverse proxies whose X-Forwarded-For fields are trusted. Any client can write that field, so it is
/// ignored if it comes from any other address. Immutable, so thread-safe.
class TrustedProxies {
 public:
  /// Trusts no proxy.
  TrustedProxies() = default;
  /// `list`: IP addresses and networks in CIDR notation, separated by commas ("127.0.0.1, fd00::/8"). Throws
  /// bad_request for anything else.
  explicit TrustedProxies(std::string_view list);

  /// Returns the address of the connection or, if that is a trusted proxy, the last address in
  /// X-Forwarded-For that is not a trusted proxy. If the field is missing, ends or has a malformed address
  /// before that, returns the address of the last proxy that was found.
  std::string client_of(const http::Request& request) const;

 private:
  // IPv4 addresses are mapped into IPv6.
  using Address = std::array<std::uint8_t, 16>;
  struct Network {
    Address address;
    unsigned bits;  // length of the prefix
  };

  static std::optional<Address> parse_address(std::string_view text);
  static Network parse_network(std::string_view text);
  bool contains(std::string_view address) const;

  std::vector<Network> networks_;
};

}  // namespace divan::api
