// A database of this server: read and written in transactions, without HTTP.
#pragma once

#include <memory>

#include "divan/docs/uploads.h"
#include "divan/js/pool.h"
#include "divan/replicator/peer.h"

namespace divan::replicator {

/// Called in each transaction that writes: throws unless the replication still owns its job.
using Fence = std::function<void(kv::Transaction& tx)>;

/// The parts of the server that a local peer needs, all of which outlive it.
struct LocalStore {
  kv::Database& store;
  docs::Catalog& catalog;
  docs::Uploads& uploads;
  js::Pool& pool;
  const Clock& clock;
  bool is_shared = false;  ///< other processes write to it
  /// Called with each document that is to be written to the database of this name: may change it, or throw
  /// the error with which it is refused. May be empty.
  std::function<void(const std::string& database, docs::IncomingDocument& document)> prepare{};
};

std::unique_ptr<Peer> open_local(const LocalStore& local, const std::string& database,
                                 const ReplicationUser& user, Fence fence);

}  // namespace divan::replicator
