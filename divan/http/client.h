// A small HTTP/1.1 client for the command line and the tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "divan/http/basic_auth.h"
#include "divan/http/client_socket.h"
#include "divan/http/message.h"
#include "divan/http/parser.h"

namespace divan::http {

struct ClientOptions {
  std::chrono::milliseconds connect_timeout{5'000};  ///< for each of the host's addresses
  std::chrono::milliseconds io_timeout{60'000};      ///< without a byte sent or received
  bool wait_for_response = false;                    ///< for the beginning of a response without limit
  std::uint32_t max_header_bytes = 64 << 10;
  std::uint64_t max_body_bytes = 1 << 30;  ///< of a response that is not streamed; also of one line
};

struct ClientResponse {
  int status = 0;
  Headers headers{};
  std::string body{};

  /// The value of the first field of this name.
  std::optional<std::string_view> header(std::string_view name) const;
};

/// One connection to one server, opened at the first request and kept. Not thread-safe; calls block.
///
/// Any status is a response; what is not a response is thrown as an Error: 503 "connection_failed" (cannot
/// connect), 503 "connection_lost" (it ended before a response or broke within it), 504 "timeout", 502
/// "bad_response".
class Client {
 public:
  Client(std::string host, std::uint16_t port, std::optional<Credentials> credentials = std::nullopt,
         ClientOptions options = {});

  /// Sends a request (with Host, Authorization and Content-Length set here) and waits for the response. A
  /// kept connection that the server has closed meanwhile is opened anew; once a request has been sent, it is
  /// repeated only if its method is idempotent (RFC 9112, section 9.3.1).
  ClientResponse request(std::string_view method, std::string_view target, std::string_view body = {},
                         const Headers& headers = {});

  /// Gets a line without its line end; answers whether to go on.
  using LineSink = std::function<bool(std::string_view line)>;

  /// Gets a piece of a body; answers whether to go on.
  using BodySink = std::function<bool(std::string_view bytes)>;

  /// As request(), but a 2xx response's body goes to `sink` as it comes, and not into the response. When
  /// `sink` has had enough the connection is closed and the response returned.
  ClientResponse stream(std::string_view method, std::string_view target, const BodySink& sink,
                        std::string_view body = {}, const Headers& headers = {});

  /// As stream(), but line by line. When `sink` has had enough the connection is closed and the response
  /// returned.
  ClientResponse stream_lines(std::string_view method, std::string_view target, const LineSink& sink,
                              std::string_view body = {}, const Headers& headers = {});

 private:
  std::string message(std::string_view method, std::string_view target, std::string_view body,
                      const Headers& headers) const;
  ClientResponse run(std::string_view method, std::string_view target, std::string_view body,
                     const Headers& headers, const BodySink* sink);
  std::optional<ClientResponse> attempt(std::unique_ptr<ClientSocket> socket, std::string_view message,
                                        bool head_only, const BodySink* sink);
  bool reuse();
  Error connection_lost(std::string_view when) const;

  const std::string host_;
  const std::uint16_t port_;
  const std::optional<Credentials> credentials_;
  const ClientOptions options_;
  std::unique_ptr<ClientSocket> socket_;
};

}  // namespace divan::http
