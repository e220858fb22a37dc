// HTTP requests to other servers, and their responses, as values.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "divan/base/error.h"
#include "divan/base/memory_quota.h"

namespace divan::http_client {

/// Limits the total size of the responses in memory. The key identifies the sender of the requests.
using ResponseMemory = MemoryQuota<const void*>;

/// How another server is reached.
struct Options {
  std::chrono::milliseconds connect_timeout{30'000};
  std::size_t max_response_bytes = 64 << 20;
  ResponseMemory* memory = nullptr;  ///< null: no limit
  std::string proxy{};               ///< URL: http, https, socks5 or socks5h; empty: none
  /// If set, the addresses to which connections may be opened: called with each that a name resolves to, or
  /// with the proxy's. Must be quick and thread-safe. Connections that are kept are not checked again.
  std::function<bool(const sockaddr&)> may_connect{};

  // TLS.
  bool verifies_certificates = true;
  std::string authorities_file{};  ///< certificates, in PEM; empty: the system's
  std::string certificate_file{};  ///< of this client, in PEM; empty: none
  std::string key_file{};
  std::string key_password{};
};

struct Request {
  std::string method = "GET";
  std::string url;
  std::string shown_url{};  ///< in errors; empty: `url`
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string user{};  ///< for Basic authentication; empty: none
  std::string password{};
  std::string body{};
  /// Of a PUT: if set, the next bytes of its body, which has `body_length` bytes. What it throws ends the
  /// request. Only with send().
  std::function<std::string()> next_of_body{};
  std::uint64_t body_length = 0;
  std::string content_type = "application/json";
  /// Without a byte in either direction; of send() and open().
  std::chrono::milliseconds idle_timeout{30'000};
  /// With its response; of requests with neither `next_of_body` nor a Stream.
  std::chrono::milliseconds timeout{300'000};
  const void* sender = nullptr;  ///< for Options::memory
};

struct Response {
  int status = 0;
  std::string body{};
  std::vector<std::string> cookies{};  ///< the values of Set-Cookie
  std::string location{};              ///< of a redirect, an absolute URL; redirects are not followed
  std::optional<std::chrono::seconds> retry_after{};  ///< from now; 0 if it has passed or is malformed
  ResponseMemory::Reservation memory{};
};

/// The body of a response that is not read piece by piece has more than `max_response_bytes`.
class ResponseTooLarge final : public Error {
 public:
  ResponseTooLarge() : Error(502, "bad_response", "A response of another server is too large.") {}
};

}  // namespace divan::http_client
