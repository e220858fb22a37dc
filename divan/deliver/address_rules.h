// To which hosts the server may send requests on behalf of users: not to itself, nor to internal services
// (server-side request forgery), unless an administrator allows it.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace divan::deliver {

/// An IPv6 address, or an IPv4 address in its IPv4-mapped form (RFC 4291, 2.5.5.2).
using Address = std::array<std::uint8_t, 16>;

/// Parses "10.0.0.1" or "::1".
std::optional<Address> parse_address(const std::string& text);

/// Returns true if the address is one of the public Internet: none of a special purpose (RFC 6890 and the
/// IANA registries), such as loopback, link-local and private ones.
bool is_public(const Address& address);

/// Immutable, so thread-safe.
class AddressRules {
 public:
  /// Lists of host names ("example.com", "*.example.com", "*") and networks ("10.0.0.0/8", "::1"), separated
  /// by commas. Throws bad_request if an entry is neither.
  AddressRules(std::string_view allow, std::string_view deny);

  /// Returns true if a connection to this address may be opened for a URL with this host, in lower case.
  bool may_connect(const std::string& host, const sockaddr& address) const;

  /// The same by the host alone, if its name is not resolved here: a proxy does that.
  bool may_request(const std::string& host) const;

 private:
  struct Network {
    Address address;
    int bits;
  };
  struct List {
    explicit List(std::string_view text, std::string_view setting);
    bool has(const std::string& host) const;
    bool has(const Address& address) const;

    std::vector<std::string> hosts;
    std::vector<Network> networks;
  };
  bool may_connect(const std::string& host, const Address& address) const;

  List allow_;
  List deny_;
};

}  // namespace divan::deliver
