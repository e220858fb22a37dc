// Connections of commands to a running server.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "divan/http/client.h"

namespace divan::app {

/// The credentials are the first available of `user`, those in `url`, `default_user`, and the administrator's
/// of the server in `data_dir`.
struct ConnectionOptions {
  std::string url = "http://127.0.0.1:5984";  // may have credentials: http://name:password@host:port
  std::string user;                           // "name:password"
  std::string default_user;                   // the same
  std::string data_dir = "data";              // of a server on this machine
};

struct ServerAddress {
  std::string host;
  std::uint16_t port = 0;
  std::optional<http::Credentials> credentials;

  friend bool operator==(const ServerAddress&, const ServerAddress&) = default;
};

/// Parses http://[NAME:PASSWORD@]HOST[:PORT][/]. Throws bad_request if it is malformed; the message never
/// contains a password.
ServerAddress parse_server_url(std::string_view url);

/// The URL without its credentials, for output. Throws like parse_server_url().
std::string url_without_credentials(std::string_view url);

/// Returns a client of the server. Throws bad_request for a malformed URL.
http::Client connect(const ConnectionOptions& options, const http::ClientOptions& client_options = {});

/// Throws the server's error (with its status, name and reason) if the response is an error.
void check_response(const http::ClientResponse& response);

/// Sends a request and returns the response's body. Throws the server's error if the response is an error.
std::string send_request(http::Client& client, std::string_view method, std::string_view target,
                         std::string_view body = {});

}  // namespace divan::app
