// A database that is reached by HTTP.
#pragma once

#include <memory>

#include "divan/base/rng.h"
#include "divan/http_client/async_client.h"
#include "divan/replicator/http_database.h"
#include "divan/replicator/peer.h"

namespace divan::replicator {

/// The database of a remote endpoint. A response that is not what the protocol says is an error 502
/// "bad_response". Calls end soon after `stopped` was set, with an error. The references must outlive the
/// peer.
std::unique_ptr<Peer> connect(const Endpoint& endpoint, const RemoteOptions& options, const Clock& clock,
                              Rng& rng, http_client::AsyncClient& waiter, const std::atomic<bool>& stopped);

}  // namespace divan::replicator
