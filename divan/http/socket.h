// The socket of a connection, with or without TLS. Only *.cc files of this module include this, directly or
// through loop.h.
#pragma once

#include <array>
#include <memory>
#include <utility>

#include "divan/http/net.h"
#include "divan/http/tls.h"

namespace divan::http {

/// A connected socket with the functions of Boost.Asio's, as far as Connection uses them. It must be set to
/// non_blocking() first. Not thread-safe.
class Socket {
 public:
  using keep_alive = PlainSocket::keep_alive;
  using linger = PlainSocket::linger;
  static constexpr auto wait_read = PlainSocket::wait_read;
  static constexpr auto wait_write = PlainSocket::wait_write;
  static constexpr auto shutdown_send = PlainSocket::shutdown_send;

  explicit Socket(PlainSocket socket, std::unique_ptr<TlsSession> tls = nullptr)
      : socket_(std::move(socket)), tls_(std::move(tls)) {}

  bool is_tls() const { return tls_ != nullptr; }
  auto get_executor() { return socket_.get_executor(); }
  auto remote_endpoint(ErrorCode& ec) const { return socket_.remote_endpoint(ec); }
  template <class Option>
  void set_option(const Option& option, ErrorCode& ec) {
    socket_.set_option(option, ec);
  }
  void non_blocking(bool mode, ErrorCode& ec) { socket_.non_blocking(mode, ec); }

  /// Calls `handler(ec)` when bytes may be read, or written. With TLS a read may still yield would_block.
  template <class Handler>
  void async_wait(PlainSocket::wait_type type, Handler handler) {
    if (tls_ && type == wait_read) {
      if (tls_->has_pending()) {
        return asio::post(get_executor(), [handler = std::move(handler)]() mutable { handler(ErrorCode()); });
      }
      if (read_wants_write_) type = wait_write;
    } else if (tls_ && type == wait_write && write_wants_read_) {
      type = wait_read;
    }
    socket_.async_wait(type, std::move(handler));
  }

  /// Reads at least one byte; `ec` is would_block if there is none, and eof at the end of the client's side.
  std::size_t read_some(asio::mutable_buffer buffer, ErrorCode& ec) {
    return tls_ ? read_tls(buffer, ec) : socket_.read_some(asio::buffer(buffer), ec);
  }

  /// Calls `handler(ec, size)` when at least one byte was read into the buffer.
  template <class Handler>
  void async_read_some(asio::mutable_buffer buffer, Handler handler) {
    if (!tls_) return socket_.async_read_some(asio::buffer(buffer), std::move(handler));
    async_wait(wait_read, [this, buffer, handler = std::move(handler)](const ErrorCode& failure) mutable {
      ErrorCode ec = failure;
      // It may have been closed since the wait ended.
      const std::size_t size = ec ? 0 : read_some(buffer, ec);
      if (ec == asio::error::would_block) return async_read_some(buffer, std::move(handler));
      handler(ec, size);
    });
  }

  /// Writes some of the bytes; `ec` is would_block if none could be written. The next call must begin with
  /// the bytes that are left.
  template <std::size_t kBuffers>
  std::size_t write_some(const std::array<asio::const_buffer, kBuffers>& buffers, ErrorCode& ec) {
    if (!tls_) return socket_.write_some(buffers, ec);
    // One record for a short response.
    std::array<char, kRecordBytes> record;
    const auto size = asio::buffer_copy(asio::buffer(record), buffers);
    return write_tls({record.data(), size}, ec);
  }

  void shutdown(PlainSocket::shutdown_type type, ErrorCode& ec) {
    if (tls_) tls_->end_output();
    socket_.shutdown(type, ec);
  }
  void close(ErrorCode& ec) {
    if (tls_ && socket_.is_open()) tls_->end_output();
    // Its descriptor may soon be that of another connection.
    tls_.reset();
    socket_.close(ec);
  }

 private:
  static constexpr std::size_t kRecordBytes = 16 << 10;  // the most of a TLS record

  std::size_t read_tls(asio::mutable_buffer buffer, ErrorCode& ec);
  std::size_t write_tls(std::span<const char> bytes, ErrorCode& ec);

  PlainSocket socket_;
  std::unique_ptr<TlsSession> tls_;
  bool read_wants_write_ = false;  // in a handshake
  bool write_wants_read_ = false;  // while the client updates its keys
};

}  // namespace divan::http
