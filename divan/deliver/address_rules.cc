#include "divan/deliver/address_rules.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "divan/base/error.h"
#include "divan/http/field_list.h"
#include "divan/http/message.h"

namespace divan::deliver {
namespace {

constexpr int kMappedBits = 96;  // of the prefix of IPv4-mapped addresses
constexpr int kAllBits = 128;

Address mapped(const void* ipv4) {
  Address address{};
  address[10] = address[11] = 0xff;
  std::memcpy(address.data() + 12, ipv4, 4);
  return address;
}

bool is_in(const Address& address, const Address& network, int bits) {
  const auto bytes = static_cast<std::size_t>(bits / 8);
  if (!std::equal(address.begin(), address.begin() + bits / 8, network.begin())) return false;
  if (bits % 8 == 0) return true;
  const auto mask = static_cast<std::uint8_t>(0xff << (8 - bits % 8));
  return (address[bytes] & mask) == (network[bytes] & mask);
}

bool is_in(const Address& address, const char* network, int bits) {
  return is_in(address, *parse_address(network), bits);
}

bool is_mapped(const Address& address) { return is_in(address, "::ffff:0.0.0.0", kMappedBits); }

bool is_public_ipv4(const Address& address) {
  struct Special {
    const char* network;
    int bits;
  };
  // https://www.iana.org/assignments/iana-ipv4-special-registry
  static constexpr Special kSpecial[] = {
      {"0.0.0.0", 8},                              // this network
      {"10.0.0.0", 8},                             // private
      {"100.64.0.0", 10},                          // shared by providers
      {"127.0.0.0", 8},                            // loopback
      {"168.63.129.16", 32},                       // the platform service of a cloud (Azure)
      {"169.254.0.0", 16},                         // link-local, with the metadata services of clouds
      {"172.16.0.0", 12},                          // private
      {"192.0.0.0", 24},                           // protocol assignments
      {"192.0.2.0", 24},                           // documentation
      {"192.88.99.0", 24},                         // relays
      {"192.168.0.0", 16},                         // private
      {"198.18.0.0", 15},                          // benchmarks
      {"198.51.100.0", 24},  {"203.0.113.0", 24},  // documentation
      {"224.0.0.0", 4},                            // multicast
      {"240.0.0.0", 4},                            // reserved, and broadcast
  };
  return std::ranges::none_of(kSpecial, [&](const Special& special) {
    return is_in(address, special.network, kMappedBits + special.bits);
  });
}

// A name, or "*." and a name, or "*".
bool is_host_pattern(std::string_view text) {
  if (text == "*") return true;
  if (text.starts_with("*.")) text.remove_prefix(2);
  return !text.empty() && text.size() <= 253 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

bool matches(std::string_view pattern, std::string_view host) {
  if (pattern == "*") return true;
  if (!pattern.starts_with("*.")) return http::equal_ignoring_case(pattern, host);
  pattern.remove_prefix(1);
  return host.size() >= pattern.size() &&
         http::equal_ignoring_case(host.substr(host.size() - pattern.size()), pattern);
}

}  // namespace

std::optional<Address> parse_address(const std::string& text) {
  in_addr ipv4{};
  if (inet_pton(AF_INET, text.c_str(), &ipv4) == 1) return mapped(&ipv4);
  Address address{};
  if (inet_pton(AF_INET6, text.c_str(), address.data()) == 1) return address;
  return std::nullopt;
}

bool is_public(const Address& address) {
  if (is_mapped(address)) return is_public_ipv4(address);
  // Translated by the network to IPv4 (RFC 6052).
  if (is_in(address, "64:ff9b::", kMappedBits)) return is_public_ipv4(mapped(address.data() + 12));
  // Global unicast, without protocol assignments (such as Teredo), documentation, and 6to4.
  return is_in(address, "2000::", 3) && !is_in(address, "2001::", 23) && !is_in(address, "2001:db8::", 32) &&
         !is_in(address, "2002::", 16) && !is_in(address, "3fff::", 20);
}

AddressRules::List::List(std::string_view text, std::string_view setting) {
  for (const auto element : http::split_list(text)) {
    std::string entry(element);
    const auto slash = entry.find('/');
    if (const auto address = parse_address(entry.substr(0, slash))) {
      const int most = is_mapped(*address) ? kAllBits - kMappedBits : kAllBits;
      int bits = most;
      bool is_valid = true;
      if (slash != std::string::npos) {
        const auto* const first = entry.data() + slash + 1;
        const auto* const last = entry.data() + entry.size();
        const auto parsed = std::from_chars(first, last, bits);
        is_valid = parsed.ec == std::errc() && parsed.ptr == last && bits >= 0 && bits <= most;
      }
      if (is_valid) {
        networks.push_back({*address, bits + (kAllBits - most)});
        continue;
      }
    } else if (is_host_pattern(entry)) {
      hosts.push_back(std::move(entry));
      continue;
    }
    throw bad_request(fmt::format(
        "[deliver] {} has `{}`, which is neither a host name nor an address or network.", setting, entry));
  }
}

bool AddressRules::List::has(const std::string& host) const {
  return std::ranges::any_of(hosts, [&](const auto& pattern) { return matches(pattern, host); });
}

bool AddressRules::List::has(const Address& address) const {
  return std::ranges::any_of(
      networks, [&](const auto& network) { return is_in(address, network.address, network.bits); });
}

AddressRules::AddressRules(std::string_view allow, std::string_view deny)
    : allow_(allow, "allow"), deny_(deny, "deny") {}

bool AddressRules::may_connect(const std::string& host, const Address& address) const {
  if (allow_.has(host) || allow_.has(address)) return true;
  return !deny_.has(host) && !deny_.has(address) && is_public(address);
}

bool AddressRules::may_connect(const std::string& host, const sockaddr& address) const {
  if (address.sa_family == AF_INET) {
    in_addr ipv4{};
    std::memcpy(&ipv4, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, sizeof ipv4);
    return may_connect(host, mapped(&ipv4));
  }
  if (address.sa_family != AF_INET6) return false;
  Address ipv6{};
  std::memcpy(ipv6.data(), &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, ipv6.size());
  return may_connect(host, ipv6);
}

bool AddressRules::may_request(const std::string& host) const {
  if (const auto address = parse_address(host)) return may_connect(host, *address);
  if (allow_.has(host)) return true;
  return !deny_.has(host) && host != "localhost" && !host.ends_with(".localhost");
}

}  // namespace divan::deliver
