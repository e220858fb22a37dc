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
  bool wait_for_response = false;                    ///< no timeout before a response's first byte
  std::uint32_t max_header_bytes = 64 << 10;
  std::uint64_t max_body_bytes = 1 << 30;  ///< of a response that is not streamed, and of one line
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
/// A response of any status is returned. Throws Error if there is none: 503 "connection_failed" (cannot
/// connect), 503 "connection_lost" (the connection ended before or within the response), 504 "timeout", 502
/// "bad_response".
class Client {
 public:
  Client(std::string host, std::uint16_t port, std::optional<Credentials> credentials = std::nullopt,
         ClientOptions options = {});

  /// Sends a request (with Host, Authorization and Content-Length set here) and waits for the response. If
  /// the server has closed the kept connection meanwhile, a new one is opened. A request that was already
  /// sent is repeated only if its method is idempotent (RFC 9112, section 9.3.1).
  ClientResponse request(std::string_view method, std::string_view target, std::string_view body = {},
                         const Headers& headers = {});

  /// Receives one line without its line end; returns false to stop.
  using LineSink = std::function<bool(std::string_view line)>;

  /// Receives a piece of a body; returns false to stop.
  using BodySink = std::function<bool(std::string_view bytes)>;

  /// Like request(), but the body of a 2xx response is passed to `sink` as it arrives and is not part of the
  /// returned response. If `sink` returns false, the connection is closed and the response returned.
  ClientResponse stream(std::string_view method, std::string_view target, const BodySink& sink,
                        std::string_view body = {}, const Headers& headers = {});

  /// Like stream(), but line by line.
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
