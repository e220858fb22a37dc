// A database of this server: read and written in transactions, without HTTP.
#pragma once

#include <memory>

#include "divan/docs/catalog.h"
#include "divan/js/pool.h"
#include "divan/replicator/peer.h"

namespace divan::replicator {

/// Called in each transaction that writes: throws unless the replication still owns its job.
using Fence = std::function<void(kv::Transaction& tx)>;

/// The parts of the server that a local peer needs, all of which outlive it.
struct LocalStore {
  kv::Database& store;
  docs::Catalog& catalog;
  js::Pool& pool;
  const Clock& clock;
  bool is_shared = false;  ///< other processes write to it
};

std::unique_ptr<Peer> open_local(const LocalStore& local, const std::string& database,
                                 const ReplicationUser& user, Fence fence);

}  // namespace divan::replicator
