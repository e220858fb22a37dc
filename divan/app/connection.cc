#include "divan/app/connection.h"

#include <charconv>

#include "divan/app/server.h"
#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::app {
namespace {

std::optional<http::Credentials> credentials(const ConnectionOptions& options) {
  const std::string line =
      !options.user.empty() ? options.user : read_line(admin_file(options.data_dir)).value_or("");
  if (line.empty()) return std::nullopt;
  const std::size_t colon = line.find(':');
  if (colon == std::string::npos) throw bad_request("A user is given as NAME:PASSWORD.");
  return http::Credentials{line.substr(0, colon), line.substr(colon + 1)};
}

}  // namespace

http::Client connect(const ConnectionOptions& options, const http::ClientOptions& client_options) {
  constexpr std::string_view kScheme = "http://";
  std::string_view rest = options.url;
  if (!rest.starts_with(kScheme)) throw bad_request("The server's URL begins with http://.");
  rest.remove_prefix(kScheme.size());
  rest = rest.substr(0, rest.find('/'));
  const std::size_t colon = rest.rfind(':');
  const bool has_port = colon != std::string_view::npos && rest.find(']', colon) == std::string_view::npos;
  std::string_view host = has_port ? rest.substr(0, colon) : rest;
  std::uint16_t port = 5984;
  if (has_port) {
    const std::string_view digits = rest.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (error != std::errc() || end != digits.data() + digits.size())
      throw bad_request("The URL's port is no number.");
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return http::Client(std::string(host), port, credentials(options), client_options);
}

void check_response(const http::ClientResponse& response) {
  if (response.status < 400) return;
  std::string name = "error", reason = response.body;
  try {
    const auto object = json::parse_object(response.body);
    if (const auto* text = object.if_contains("error")) name = text->as_string();
    if (const auto* text = object.if_contains("reason")) reason = text->as_string();
  } catch (const std::exception&) {
    // Then the body as it is.
  }
  throw Error(response.status, name, reason);
}

std::string ask(http::Client& client, std::string_view method, std::string_view target,
                std::string_view body) {
  http::Headers headers;
  if (!body.empty()) headers.push_back({"Content-Type", "application/json"});
  auto response = client.request(method, target, body, headers);
  check_response(response);
  return std::move(response.body);
}

}  // namespace divan::app
