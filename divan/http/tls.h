// TLS of the server's connections (RFC 8446, RFC 5246), with OpenSSL.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "divan/http/server_options.h"

namespace divan::http {

/// The outcome of a read or write that does not block.
enum class TlsResult {
  done,
  wants_read,   ///< to be repeated when the socket is readable
  wants_write,  ///< to be repeated when it is writable
  ended,        ///< the peer has ended its side
  failed,
};

/// TLS on one connected socket that does not block. The handshake is part of the first reads. Not
/// thread-safe.
class TlsSession {
 public:
  /// `socket` must stay open as long as the session is used.
  TlsSession(SSL_CTX* context, int socket);

  /// Reads up to buffer.size() bytes, at least one; `size` is how many.
  TlsResult read(std::span<char> buffer, std::size_t& size);
  /// Writes some of the bytes. After wants_write, a call must begin with the same bytes.
  TlsResult write(std::span<const char> bytes, std::size_t& size);
  /// Bytes that were received already and can be read.
  bool has_pending() const { return SSL_pending(session_.get()) > 0; }
  /// Sends the notification that no more bytes follow, if the socket is writable.
  void end_output();

 private:
  struct Free {
    void operator()(SSL* session) const { SSL_free(session); }
  };
  TlsResult outcome(int code);

  std::unique_ptr<SSL, Free> session_;
};

/// The certificate, and how connections use TLS. The certificate's files are read again when they have
/// changed, checked at most once a second by new connections; if they are invalid then, the error is logged,
/// and the previous certificate stays. Not thread-safe: for the thread that accepts connections.
class TlsContext {
 public:
  /// Throws bad_request, with the file or option, if one is invalid.
  explicit TlsContext(TlsOptions options);

  std::unique_ptr<TlsSession> accept(int socket);

 private:
  using Handle = std::shared_ptr<SSL_CTX>;
  // Changes when one of the files does.
  struct FileStamp {
    std::int64_t modified_ns = 0;
    std::uint64_t inode = 0;
    bool operator==(const FileStamp&) const = default;
  };
  using Stamps = std::pair<FileStamp, FileStamp>;

  static FileStamp stamp_of(const std::string& path);
  Stamps stamps() const { return {stamp_of(options_.certificate_file), stamp_of(options_.key_file)}; }
  Handle load() const;
  Handle current();

  const TlsOptions options_;
  Stamps stamps_;
  std::chrono::steady_clock::time_point checked_;
  Handle context_;
};

}  // namespace divan::http
