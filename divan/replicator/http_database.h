// Requests to a database of another server: credentials, repetitions, errors.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "divan/replicator/http_client.h"
#include "divan/replicator/replication.h"

namespace divan::replicator {

struct RemoteOptions {
  HttpOptions http{};
  std::chrono::milliseconds idle_timeout{30'000};  ///< without a byte
  int retries = 5;                                 ///< of a request, with pauses that double
};

/// With user and password, requests have Basic credentials. A server that refuses these gets a session's
/// cookie (https://docs.couchdb.org/en/stable/api/server/authn.html), and another one when it has expired.
/// Calls block, and end soon after `stopped` was set, with an error. Used by one thread at a time.
class HttpDatabase {
 public:
  /// `stopped` must outlive it.
  HttpDatabase(Endpoint endpoint, const RemoteOptions& options, const std::atomic<bool>& stopped);

  /// A request about the database, with credentials. `path` begins with a slash or `?`, or is empty.
  HttpRequest request(std::string method, std::string_view path) const;

  HttpResponse send_once(const HttpRequest& request) const;
  /// Calls `send`, which makes and sends a request, until there is a response that is not temporary (429, or
  /// 500 and more), or there were too many of them.
  HttpResponse repeat(const std::function<HttpResponse()>& send);
  HttpResponse send(const std::string& method, const std::string& path, const std::string& body = {});
  /// Opens a response that is read piece by piece.
  std::unique_ptr<HttpStream> open(const std::string& path);

  /// Throws the error of a response whose status is not 2xx.
  void check(const HttpResponse& response) const;
  /// The JSON of a response whose status is 2xx, in json::compact()'s form.
  std::string checked(const HttpResponse& response) const;

  const Endpoint& endpoint() const { return endpoint_; }
  const RemoteOptions& options() const { return options_; }

 private:
  bool log_in();
  void pause(std::chrono::milliseconds duration) const;

  const Endpoint endpoint_;
  const RemoteOptions options_;
  const std::atomic<bool>& stopped_;
  std::string session_;  // a cookie; empty: Basic credentials
};

}  // namespace divan::replicator
