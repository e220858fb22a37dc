// The address of a request's client, which may be behind reverse proxies.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/http/message.h"

namespace divan::api {

/// The reverse proxies whose X-Forwarded-For fields are believed. Any client can write that field: what a
/// proxy that is not listed sends in it means nothing. Immutable, so thread-safe.
class TrustedProxies {
 public:
  /// None.
  TrustedProxies() = default;
  /// `list`: IP addresses and networks in CIDR notation, separated by commas ("127.0.0.1, fd00::/8"). Throws
  /// bad_request for anything else.
  explicit TrustedProxies(std::string_view list);

  /// The nearest address that is no trusted proxy: the connection's, or, where that is a trusted proxy's, the
  /// last of the addresses in X-Forwarded-For that is none. Of proxies that name no client, and of addresses
  /// that are malformed, the address of the proxy that sent them.
  std::string client_of(const http::Request& request) const;

 private:
  // IPv4 addresses are those that are mapped into IPv6.
  using Address = std::array<std::uint8_t, 16>;
  struct Network {
    Address address;
    unsigned bits;  // of the address, that are the network's
  };

  static std::optional<Address> parse_address(std::string_view text);
  static Network parse_network(std::string_view text);
  bool contains(std::string_view address) const;

  std::vector<Network> networks_;
};

}  // namespace divan::api
