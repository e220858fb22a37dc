// A database that is reached by HTTP.
#pragma once

#include <memory>

#include "divan/base/rng.h"
#include "divan/replicator/peer.h"

namespace divan::replicator {

struct RemoteOptions {
  std::chrono::milliseconds connect_timeout{30'000};
  std::chrono::milliseconds idle_timeout{30'000};  ///< without a byte
  int retries = 5;                                 ///< of a request, with pauses that double
  std::size_t max_response_bytes = 64 << 20;
};

/// The database of a remote endpoint. Requests that fail without a response, or with 429 or a status of 500
/// or more, are repeated. A response that is not what the protocol says is an error 502 "bad_response".
/// `rng` must outlive it.
std::unique_ptr<Peer> connect(const Endpoint& endpoint, Rng& rng, const RemoteOptions& options = {});

}  // namespace divan::replicator
