// A database that is reached by HTTP.
#pragma once

#include <memory>

#include "divan/base/rng.h"
#include "divan/replicator/http_client.h"
#include "divan/replicator/peer.h"

namespace divan::replicator {

struct RemoteOptions {
  HttpOptions http{};
  std::chrono::milliseconds idle_timeout{30'000};  ///< without a byte
  int retries = 5;                                 ///< of a request, with pauses that double
};

/// The database of a remote endpoint. Requests that fail without a response, or with 429 or a status of 500
/// or more, are repeated. A response that is not what the protocol says is an error 502 "bad_response".
/// Calls end soon after `stopped` was set, with an error. The references must outlive the peer.
std::unique_ptr<Peer> connect(const Endpoint& endpoint, const RemoteOptions& options, Rng& rng,
                              HttpWaiter& waiter, const std::atomic<bool>& stopped);

}  // namespace divan::replicator
