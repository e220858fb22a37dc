#include "divan/app/connection.h"

#include <fmt/core.h>

#include <charconv>

#include "divan/app/admins.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/http/url.h"

namespace divan::app {
namespace {

constexpr std::string_view kScheme = "http://";
constexpr std::uint16_t kDefaultPort = 5984;

http::Credentials parse_user(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) throw bad_request("The user has no password; expected NAME:PASSWORD.");
  return {std::string(line.substr(0, colon)), std::string(line.substr(colon + 1))};
}

http::Credentials parse_user_of_url(std::string_view user) {
  const std::size_t colon = user.find(':');
  if (colon == std::string_view::npos) throw bad_request("The server's URL has a name without a password.");
  return {http::percent_decode(user.substr(0, colon)), http::percent_decode(user.substr(colon + 1))};
}

// The URL without the scheme.
std::string_view after_scheme(std::string_view url) {
  if (url.starts_with(kScheme)) return url.substr(kScheme.size());
  const std::size_t scheme = url.find("://");
  throw bad_request(scheme == std::string_view::npos
                        ? std::string("The server's URL has no scheme; expected http://HOST:PORT.")
                        : fmt::format("The server's URL begins with `{}://`; expected http://HOST:PORT.",
                                      url.substr(0, scheme)));
}

std::optional<http::Credentials> credentials(const ConnectionOptions& options, const ServerAddress& address) {
  if (!options.user.empty()) return parse_user(options.user);
  if (address.credentials) return address.credentials;
  if (!options.default_user.empty()) return parse_user(options.default_user);
  const auto line = read_line(admin_file(options.data_dir));
  return line ? std::optional(parse_user(*line)) : std::nullopt;
}

}  // namespace

ServerAddress parse_server_url(std::string_view url) {
  ServerAddress address;
  const std::string_view rest = after_scheme(url);
  const std::size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  std::string_view authority = rest.substr(0, end);
  const std::string_view path = rest.substr(end);
  // The authority was split within a password.
  if (path.find('@') != std::string_view::npos)
    throw bad_request("In the server's URL `/`, `?` and `#` of a name or password must be percent-encoded.");
  if (!path.empty() && path != "/")
    throw bad_request(fmt::format("The server's URL has the path `{}`; expected http://HOST:PORT.", path));
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    address.credentials = parse_user_of_url(authority.substr(0, at));
    authority.remove_prefix(at + 1);
  }
  const std::size_t colon = authority.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos;
  std::string_view host = has_port ? authority.substr(0, colon) : authority;
  address.port = kDefaultPort;
  if (has_port) {
    const std::string_view digits = authority.substr(colon + 1);
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
    if (error != std::errc() || stop != digits.data() + digits.size() || address.port == 0)
      throw bad_request("The port of the server's URL is invalid; expected 1 to 65535.");
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) throw bad_request("The server's URL has no host; expected http://HOST:PORT.");
  address.host = host;
  return address;
}

std::string url_without_credentials(std::string_view url) {
  if (!parse_server_url(url).credentials) return std::string(url);
  return std::string(kScheme).append(url.substr(url.rfind('@') + 1));
}

http::Client connect(const ConnectionOptions& options, const http::ClientOptions& client_options) {
  const ServerAddress address = parse_server_url(options.url);
  return http::Client(address.host, address.port, credentials(options, address), client_options);
}

void check_response(const http::ClientResponse& response) {
  if (response.status < 400) return;
  std::string name = "error", reason = response.body;
  try {
    const auto object = json::parse_object(response.body);
    if (const auto* text = object.if_contains("error")) name = text->as_string();
    if (const auto* text = object.if_contains("reason")) reason = text->as_string();
  } catch (const std::exception&) {
    // Not JSON: the body is the reason.
  }
  throw Error(response.status, name, reason);
}

std::string send_request(http::Client& client, std::string_view method, std::string_view target,
                         std::string_view body) {
  http::Headers headers;
  if (!body.empty()) headers.push_back({"Content-Type", "application/json"});
  auto response = client.request(method, target, body, headers);
  check_response(response);
  return std::move(response.body);
}

}  // namespace divan::app
