// A blocking TCP connection to a server, with timeouts.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace divan::http {

/// One open connection. Not thread-safe. The timeouts limit the time without progress, not the total time;
/// when one expires, Error 504 "timeout" is thrown.
class ClientSocket {
 public:
  /// Connects to the first of the host's addresses that accepts the connection. Throws Error 503
  /// "connection_failed", naming host and port, if none accepts it.
  ClientSocket(const std::string& host, std::uint16_t port, std::chrono::milliseconds connect_timeout,
               std::chrono::milliseconds io_timeout);
  ~ClientSocket();
  ClientSocket(const ClientSocket&) = delete;
  ClientSocket& operator=(const ClientSocket&) = delete;

  /// Sends all bytes. Returns false if the server has closed the connection.
  bool send(std::string_view bytes);

  /// Waits for bytes and returns how many were received: 0 if the server has ended the connection, nullopt if
  /// the connection is broken. Without `limited` there is no timeout: it waits for as long as the server's
  /// machine is reachable.
  std::optional<std::size_t> receive(std::span<char> into, bool limited = true);

  /// Returns true if receive() would not block: bytes or the end of the connection have arrived.
  bool readable() const;

  /// Half-closes the connection: the server sees the end of the input; its response can still be received.
  void end_output() const;

  /// Makes closing reset the connection (RST instead of FIN), as after a crash of this machine.
  void reset_at_close() const;

 private:
  void wait(short events, bool limited = true);

  std::string peer_;  // "host:port", for error messages
  std::chrono::milliseconds io_timeout_;
  int fd_ = -1;
};

/// "host:port", with brackets around an IPv6 address.
std::string host_and_port(std::string_view host, std::uint16_t port);

}  // namespace divan::http
