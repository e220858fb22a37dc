// HTTP requests to other servers, by libcurl: TLS, proxies, compression, connections that are kept.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "divan/base/error.h"
#include "divan/base/memory_quota.h"
#include "divan/base/mutex.h"

namespace divan::replicator {

/// Limits the total size of the responses in memory. The key identifies the sender of the requests.
using ResponseMemory = MemoryQuota<const void*>;

/// How another server is reached.
struct HttpOptions {
  std::chrono::milliseconds connect_timeout{30'000};
  std::size_t max_response_bytes = 64 << 20;
  ResponseMemory* memory = nullptr;  ///< null: no limit
  std::string proxy{};               ///< URL: http, https, socks5 or socks5h; empty: none

  // TLS.
  bool verifies_certificates = true;
  std::string authorities_file{};  ///< certificates, in PEM; empty: the system's
  std::string certificate_file{};  ///< of this client, in PEM; empty: none
  std::string key_file{};
  std::string key_password{};
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string user{};  ///< for Basic authentication; empty: none
  std::string password{};
  std::string body{};
  /// Of a PUT: if set, the next bytes of its body, which has `body_length` bytes. What it throws ends the
  /// request.
  std::function<std::string()> next_of_body{};
  std::uint64_t body_length = 0;
  std::string content_type = "application/json";
  std::chrono::milliseconds idle_timeout{30'000};  ///< without a byte in either direction
  const void* sender = nullptr;                    ///< for HttpOptions::memory
};

struct HttpResponse {
  int status = 0;
  std::string body{};
  std::vector<std::string> cookies{};  ///< the values of Set-Cookie
  std::string location{};              ///< of a redirect, an absolute URL; redirects are not followed
  ResponseMemory::Reservation memory{};
};

/// The body of a response that is not read piece by piece has more than `max_response_bytes`.
class ResponseTooLarge final : public Error {
 public:
  ResponseTooLarge() : Error(502, "bad_response", "A response of another server is too large.") {}
};

/// Returns a response of any status. Throws Error 503 "connection_failed", 504 "timeout", 502 "bad_response",
/// bad_request for an invalid option, and 503 "stopped" soon after `stopped` was set. Blocks. Each thread
/// keeps its connections.
HttpResponse send(const HttpRequest& request, const HttpOptions& options, const std::atomic<bool>& stopped);

/// The body of a response, piece by piece. Not thread-safe. Calls block, and throw as send().
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  /// The status of the response.
  virtual int status() = 0;
  /// The next bytes, at most about a megabyte; empty at the end.
  virtual std::string next() = 0;
};

/// Sends a GET on a connection of its own. `stopped` must outlive the stream.
std::unique_ptr<HttpStream> open(const HttpRequest& request, const HttpOptions& options,
                                 const std::atomic<bool>& stopped);

/// Waits for the ends of any number of long polls on one thread, and discards their responses. A request is
/// aborted when its response has more than 1 MiB, or after ten minutes. Thread-safe.
class HttpWaiter {
 public:
  HttpWaiter();
  /// Ends all requests.
  ~HttpWaiter();
  HttpWaiter(const HttpWaiter&) = delete;
  HttpWaiter& operator=(const HttpWaiter&) = delete;

  /// A request; ends with this object. Must not outlive the waiter.
  class Wait {
   public:
    Wait(HttpWaiter& waiter, std::uint64_t number) : waiter_(waiter), number_(number) {}
    ~Wait() { waiter_.cancel(number_); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    HttpWaiter& waiter_;
    const std::uint64_t number_;
  };
  /// Sends a request. `ended` is called once, on the waiter's thread, when there is a response or an error.
  /// It must be quick, and may still be called after the end of the Wait.
  std::unique_ptr<Wait> wait_for(HttpRequest request, const HttpOptions& options,
                                 std::function<void()> ended);

 private:
  struct Impl;
  void cancel(std::uint64_t number);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace divan::replicator
