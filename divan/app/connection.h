// How commands that talk to a running server find it, and the way to ask it.
#pragma once

#include <boost/json.hpp>
#include <string>

#include "divan/http/client.h"

namespace divan::app {

struct ConnectionOptions {
  std::string url = "http://127.0.0.1:5984";
  std::string user;               // "name:password"; empty: from the data directory
  std::string data_dir = "data";  // of a server on this machine, for its administrator's password
};

/// A client of the server. Throws bad_request for a malformed URL.
http::Client connect(const ConnectionOptions& options, const http::ClientOptions& client_options = {});

/// Throws the server's error (with its status, name and reason) if the response is one.
void check_response(const http::ClientResponse& response);

/// Asks, and throws the server's error if it answers one.
std::string ask(http::Client& client, std::string_view method, std::string_view target,
                std::string_view body = {});

}  // namespace divan::app
