// The HTTP/1.1 server (RFC 9112).
//
// A few io threads each run their own event loop; a connection lives on one of them from accept to close.
// Each connection serves one request at a time and responds in order; pipelined requests wait in a bounded
// buffer. The handler is called with a complete request, body included.
#pragma once

#include <cstdint>
#include <memory>

#include "divan/base/clock.h"
#include "divan/http/exchange.h"
#include "divan/http/server_options.h"

namespace divan::http {

/// Listens from its construction until stop(). Thread-safe; stop() and the destructor must not be called on
/// an io thread.
class Server {
 public:
  using Options = ServerOptions;

  /// Throws internal_error, naming address and port, if it cannot listen there, and bad_request as
  /// TlsContext. `clock` is used for the Date field and must outlive the server.
  Server(Options options, const Clock& clock, Handler handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;
  /// The port of Options::tls; 0 without it.
  std::uint16_t tls_port() const;
  /// Open connections.
  std::size_t connections() const;

  /// Returns true if all io threads run a handler within the timeout: none of them is blocked for so long.
  bool responds(std::chrono::milliseconds timeout) const;

  /// Stops accepting connections and requests, lets requests in progress finish within Options::stop_timeout,
  /// then cuts their connections. Returns when all connections are closed and the io threads have ended.
  /// Idempotent.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace divan::http
