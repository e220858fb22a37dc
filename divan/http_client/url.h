// URLs of other servers.
#pragma once

#include <string>

namespace divan::http_client {

struct Url {
  std::string host{};    ///< lower case; of an IPv6 address without brackets
  std::string origin{};  ///< scheme, host and port: "https://example.com:443"
  bool has_user = false;
};

/// Parses an absolute URL, http or https, without a fragment, as libcurl will when it sends the request.
/// Throws bad_request.
Url parse_url(const std::string& text);

/// Returns true for the URL of a proxy: http, https, socks5 or socks5h.
bool is_proxy_url(const std::string& text);

}  // namespace divan::http_client
