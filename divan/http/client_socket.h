// A blocking TCP connection to a server, with timeouts.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace divan::http {

/// One open connection. Not thread-safe. Waits are limited by the time without progress, not by the whole
/// time, and end with Error 504 "timeout".
class ClientSocket {
 public:
  /// Connects to the first of the host's addresses that takes the connection. Throws Error 503
  /// "connection_failed", naming host and port, if none does.
  ClientSocket(const std::string& host, std::uint16_t port, std::chrono::milliseconds connect_timeout,
               std::chrono::milliseconds io_timeout);
  ~ClientSocket();
  ClientSocket(const ClientSocket&) = delete;
  ClientSocket& operator=(const ClientSocket&) = delete;

  /// Sends everything. False if the server has closed the connection.
  bool send(std::string_view bytes);

  /// Waits for bytes and answers how many came: 0 when the server has ended the connection, nothing when it
  /// is broken. Without `limited`, it waits for as long as the server's machine is there.
  std::optional<std::size_t> receive(std::span<char> into, bool limited = true);

  /// Whether there is something to receive already, be it bytes or the connection's end.
  bool readable() const;

  /// Ends our side: the server sees the end of the input, and its answer can still be received.
  void end_output();

  /// From now on closing resets the connection, as if this machine had lost it.
  void reset_at_close();

 private:
  void wait(short events, bool limited = true);

  std::string peer_;  // for messages: "host:port"
  std::chrono::milliseconds io_timeout_;
  int fd_ = -1;
};

/// "host:port", with brackets around an IPv6 address.
std::string host_and_port(std::string_view host, std::uint16_t port);

}  // namespace divan::http
