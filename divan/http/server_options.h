// The server's settings and limits.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "divan/http/parser.h"

namespace divan::http {

enum class TlsVersion { v1_2, v1_3 };

/// How connections use TLS.
struct TlsOptions {
  std::uint16_t port = 0;        ///< 0: any free one, see Server::tls_port()
  std::string certificate_file;  ///< PEM: the certificate, and the intermediate certificates
  std::string key_file;          ///< PEM, without a password
  std::string ciphers;           ///< of TLS 1.2, in OpenSSL's form; empty: OpenSSL's default
  TlsVersion min_version = TlsVersion::v1_2;
  TlsVersion max_version = TlsVersion::v1_3;
};

/// Every limit of the server, with its default.
struct ServerOptions {
  std::string address = "127.0.0.1";  ///< numeric IPv4 or IPv6 address to listen on
  std::uint16_t port = 0;             ///< 0: any free one, see Server::port()
  unsigned threads = 0;               ///< io threads; 0: as many as there are cores
  std::optional<TlsOptions> tls;      ///< listens on a second port, with TLS
  std::string version = "0";          ///< for the Server field: "Divan/<version>"

  std::uint32_t max_header_bytes = 64 << 10;  ///< a request's start line and fields: else 431; at least 1
                                              ///< KiB. Pipelined bytes beyond it stay in the socket.
  std::size_t max_target_bytes = 16 << 10;    ///< a request's target: else 414
  std::uint64_t max_body_bytes = 64 << 20;    ///< a request's body: else 413
  StreamedBody streamed_body{};               ///< which bodies the handler reads with Exchange::read_body()
  std::size_t max_connections = 10'000;       ///< further ones get a 503 and are closed
  std::size_t max_unsent_bytes = 16 << 20;    ///< of a stream: else its client is disconnected

  std::chrono::milliseconds idle_timeout{120'000};  ///< between two requests of a connection
  std::chrono::milliseconds head_timeout{30'000};   ///< from a request's first byte to the end of its head
  std::chrono::milliseconds body_timeout{60'000};   ///< without a byte of an incomplete body
  std::chrono::milliseconds send_timeout{60'000};   ///< without progress of a write to the client
  std::chrono::milliseconds half_close_timeout{30'000};  ///< without output for a client that has ended its
                                                         ///< side; then it is disconnected
  std::chrono::milliseconds linger_timeout{2'000};       ///< for a client to read its last response
  std::chrono::milliseconds stop_timeout{10'000};        ///< for requests in progress when the server stops
};

}  // namespace divan::http
