#include "divan/http/socket.h"

namespace divan::http {
namespace {

ErrorCode error_of(TlsResult result) {
  switch (result) {
    case TlsResult::done: return {};
    case TlsResult::wants_read:
    case TlsResult::wants_write: return asio::error::would_block;
    case TlsResult::ended: return asio::error::eof;
    case TlsResult::failed: break;
  }
  return asio::error::connection_reset;
}

}  // namespace

std::size_t Socket::read_tls(asio::mutable_buffer buffer, ErrorCode& ec) {
  std::size_t size = 0;
  const auto result = tls_->read({static_cast<char*>(buffer.data()), buffer.size()}, size);
  read_wants_write_ = result == TlsResult::wants_write;
  ec = error_of(result);
  return size;
}

std::size_t Socket::write_tls(std::span<const char> bytes, ErrorCode& ec) {
  std::size_t size = 0;
  const auto result = tls_->write(bytes, size);
  write_wants_read_ = result == TlsResult::wants_read;
  ec = error_of(result);
  return size;
}

}  // namespace divan::http
