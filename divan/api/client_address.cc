#include "divan/api/client_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "divan/base/error.h"
#include "divan/http/field_list.h"

namespace divan::api {
namespace {

constexpr unsigned kAddressBits = 128;
constexpr unsigned kMappedBits = 96;  // before an IPv4 address

}  // namespace

std::optional<TrustedProxies::Address> TrustedProxies::parse_address(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  const std::string terminated(text);
  Address address{};
  if (inet_pton(AF_INET6, terminated.c_str(), address.data()) == 1) return address;
  if (inet_pton(AF_INET, terminated.c_str(), address.data() + kMappedBits / 8) != 1) return std::nullopt;
  address[10] = address[11] = 0xff;
  return address;
}

TrustedProxies::Network TrustedProxies::parse_network(std::string_view text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const auto address = parse_address(text.substr(0, slash));
  const bool is_v4 = text.substr(0, slash).find(':') == std::string_view::npos;
  const unsigned before = is_v4 ? kMappedBits : 0;
  unsigned bits = kAddressBits - before;
  bool good = address.has_value();
  if (slash < text.size()) {
    const char* const end = text.data() + text.size();
    unsigned given = 0;
    const auto [last, error] = std::from_chars(text.data() + slash + 1, end, given);
    good = good && error == std::errc() && last == end && given <= bits;
    bits = given;
  }
  if (!good) {
    throw bad_request(
        fmt::format("Setting [chttpd] trusted_proxies has `{}`; expected IP addresses and networks such as "
                    "10.0.0.0/8, separated by commas.",
                    text));
  }
  return {*address, before + bits};
}

TrustedProxies::TrustedProxies(std::string_view list) {
  if (http::trim(list).empty()) return;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    networks_.push_back(parse_network(http::trim(list.substr(begin, end - begin))));
    begin = end + 1;
  }
}

bool TrustedProxies::contains(std::string_view text) const {
  const auto address = parse_address(text);
  if (!address) return false;
  const auto is_in = [&](const Network& network) {
    for (unsigned bit = 0; bit < network.bits; bit += 8) {
      const unsigned kept = std::min(network.bits - bit, 8U);
      const auto mask = static_cast<std::uint8_t>(0xff << (8 - kept));
      if (((*address)[bit / 8] ^ network.address[bit / 8]) & mask) return false;
    }
    return true;
  };
  return std::any_of(networks_.begin(), networks_.end(), is_in);
}

std::string TrustedProxies::client_of(const http::Request& request) const {
  std::string client = request.peer();
  if (networks_.empty() || !contains(client)) return client;
  // A proxy appends to the field, or adds another field.
  std::string forwarded;
  for (const auto& [name, value] : request.headers()) {
    if (http::equal_ignoring_case(name, "X-Forwarded-For")) forwarded.append(",").append(value);
  }
  std::string_view rest = forwarded;
  while (contains(client) && !rest.empty()) {
    const std::size_t comma = rest.rfind(',');
    const auto address = http::trim(rest.substr(comma + 1));
    if (!parse_address(address)) break;
    client = address;
    rest = rest.substr(0, comma);
  }
  return client;
}

}  // namespace divan::api
