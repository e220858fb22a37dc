// HTTP requests to other servers, by libcurl, on the calling thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "divan/http_client/request.h"

namespace divan::http_client {

/// Returns a response of any status. Throws Error 503 "connection_failed", 403 "address_not_allowed", 504
/// "timeout", 502 "bad_response", bad_request for an invalid option, and 503 "stopped" soon after `stopped`
/// was set. Blocks. Each thread keeps its connections.
Response send(const Request& request, const Options& options, const std::atomic<bool>& stopped);

/// The body of a response, piece by piece. Not thread-safe. Calls block, and throw as send().
class Stream {
 public:
  virtual ~Stream() = default;
  /// The status of the response.
  virtual int status() = 0;
  /// The next bytes, at most about a megabyte; empty at the end.
  virtual std::string next() = 0;
};

/// Sends a GET on a connection of its own. `stopped` must outlive the stream.
std::unique_ptr<Stream> open(const Request& request, const Options& options,
                             const std::atomic<bool>& stopped);

}  // namespace divan::http_client
