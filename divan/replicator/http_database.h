// Requests to a database of another server: credentials, repetitions, errors.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "divan/base/clock.h"
#include "divan/base/error.h"
#include "divan/http_client/client.h"
#include "divan/replicator/replication.h"

namespace divan::replicator {

struct RemoteOptions {
  http_client::Options http{};
  std::chrono::milliseconds idle_timeout{30'000};  ///< without a byte in either direction
  int retries = 5;                                 ///< of a request, with pauses that double
};

/// An error that a response of another server reports. It may be temporary, whatever its status.
class ServerError final : public Error {
 public:
  using Error::Error;
};

/// Before the first request, redirects of the database's URL are followed; those to another origin get no
/// credentials. Other requests do not follow redirects.
///
/// With user and password, requests have Basic credentials. For a server that refuses or ignores these, there
/// is a session (https://docs.couchdb.org/en/stable/api/server/authn.html), which is renewed before it
/// expires.
///
/// Calls block, and end soon after `stopped` was set, with an error. Used by one thread at a time.
class HttpDatabase {
 public:
  /// The references must outlive it.
  HttpDatabase(Endpoint endpoint, const RemoteOptions& options, const Clock& clock,
               const std::atomic<bool>& stopped);

  /// A request for the database, with credentials. `path` begins with a slash or `?`, or is empty. Must not
  /// be called before repeat() calls its argument for the first time.
  http_client::Request request(std::string method, std::string_view path) const;

  http_client::Response send_once(const http_client::Request& request) const;
  /// Calls `send`, which makes and sends a request, until there is a response that is not temporary (429, or
  /// 500 and more), or there were too many of them.
  http_client::Response repeat(const std::function<http_client::Response()>& send);
  http_client::Response send(const std::string& method, const std::string& path,
                             const std::string& body = {});
  /// Opens a response that is read piece by piece.
  std::unique_ptr<http_client::Stream> open(const std::string& path);

  /// Throws ServerError if the response's status is not 2xx.
  void check(const http_client::Response& response) const;
  /// The JSON of a response whose status is 2xx, in json::compact()'s form.
  std::string checked(const http_client::Response& response) const;

  /// The endpoint's shown().
  const std::string& shown() const { return shown_; }
  const RemoteOptions& options() const { return options_; }

 private:
  void connect();
  void follow_redirects();
  void authenticate();
  http_client::Request session_request(std::string method) const;
  void log_in();
  void pause(std::chrono::milliseconds duration) const;

  Endpoint endpoint_;
  const std::string shown_;
  const RemoteOptions options_;
  const Clock& clock_;
  const std::atomic<bool>& stopped_;
  bool is_connected_ = false;
  std::string session_;  // a cookie; empty: Basic credentials
  MonotonicTime renew_at_{};
};

}  // namespace divan::replicator
