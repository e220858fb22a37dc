// HTTP requests to other servers, by libcurl: TLS, proxies, compression, connections that are kept.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "divan/base/error.h"

namespace divan::replicator {

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
  std::chrono::milliseconds idle_timeout{30'000};  ///< without a byte of a response
};

struct HttpResponse {
  int status = 0;
  std::string body;
};

/// The body of a response that is not read piece by piece has more than `max_response_bytes`.
class ResponseTooLarge final : public Error {
 public:
  ResponseTooLarge() : Error(502, "bad_response", "A response of another server is too large.") {}
};

struct HttpClientOptions {
  std::chrono::milliseconds connect_timeout{30'000};
  std::size_t max_response_bytes = 64 << 20;
};

/// The body of a response, piece by piece. Not thread-safe. Calls block.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  /// The status of the response. Throws as HttpClient::send().
  virtual int status() = 0;
  /// The next bytes, at most about a megabyte; empty at the end. Throws as HttpClient::send().
  virtual std::string next() = 0;
};

/// Keeps its connections. Not thread-safe, except stop(). Calls block.
class HttpClient {
 public:
  explicit HttpClient(HttpClientOptions options = {});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Returns a response of any status. Throws Error 503 "connection_failed", 504 "timeout", 502
  /// "bad_response", and 503 "stopped" after stop().
  HttpResponse send(const HttpRequest& request);

  /// Sends a GET on a connection of its own; the response is read while its stream is. The client must
  /// outlive it, and may send other requests meanwhile.
  std::unique_ptr<HttpStream> open(const HttpRequest& request);

  /// Ends the present request and all later ones, within a second.
  void stop();
  bool stopped() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace divan::replicator
