// The HTTP/1.1 server (RFC 9112).
//
// A few io threads each run their own event loop; a connection lives on one of them from accept to close.
// Each connection serves one request at a time and answers in order: what a client sends ahead waits in a
// bounded buffer. A request is handed to the handler when it is complete, body included.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "divan/base/clock.h"
#include "divan/http/exchange.h"
#include "divan/http/server_options.h"

namespace divan::http {

/// Takes a request. Called on an io thread, so it must not block: it answers at once or hands the exchange
/// on. What it throws becomes the answer (Error) or 500.
using Handler = std::function<void(std::shared_ptr<Exchange>)>;

/// Listens from construction to stop(). Thread-safe; stop() and the destructor must not be called on an io
/// thread.
class Server {
 public:
  using Options = ServerOptions;

  /// Throws internal_error, naming address and port, if it cannot listen there. `clock` gives the Date field
  /// its time and must outlive the server.
  Server(Options options, const Clock& clock, Handler handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;
  /// Open connections.
  std::size_t connections() const;

  /// Takes no more connections and requests, lets those under way end within Options::stop_timeout, then cuts
  /// them off. Returns when all connections are closed and the io threads have ended. Idempotent.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace divan::http
