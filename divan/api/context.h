// The dependencies of routes.
#pragma once

#include <atomic>
#include <functional>

#include "divan/api/accounts.h"
#include "divan/backup/restores.h"
#include "divan/base/config.h"
#include "divan/base/memory_quota.h"
#include "divan/base/metrics.h"
#include "divan/base/thread_pool.h"
#include "divan/docs/catalog.h"
#include "divan/docs/uploads.h"
#include "divan/index/builds.h"
#include "divan/jobs/acceptor.h"
#include "divan/js/pool.h"
#include "divan/workers/registry.h"

namespace divan::index {
class Builder;
}
namespace divan::ken {
class Ken;
}
namespace divan::compaction {
class Compactor;
}
namespace divan::replicator {
class Replicator;
}
namespace divan::workers {
class Monitor;
}

namespace divan::api {

class FunctionThreads;
class IndexWaits;
class History;
class StaticFiles;
class Statistics;
class Tails;
class Uuids;
class Validations;

/// The file system of the data directory; 0 if it cannot be read.
struct DiskSpace {
  std::int64_t total_bytes = 0;
  std::int64_t free_bytes = 0;  ///< for this process's user
};

/// What this process uses.
struct NodeUse {
  std::int64_t uptime_s = 0;
  std::int64_t memory_bytes = 0;  ///< resident
  std::int64_t context_switches = 0;
  std::int64_t read_bytes = 0;  ///< by system calls, from files and sockets
  std::int64_t written_bytes = 0;
  DiskSpace disk;
};

/// What administrators can do with the process. Thread-safe.
struct NodeControl {
  /// Stops the server in order and starts it again, soon and not during the call.
  std::function<void()> restart;
  /// Reads all sources of settings again. Throws bad_request if one is invalid; nothing is changed then.
  std::function<void()> reload_settings;
  std::function<NodeUse()> read_use;
  /// All settings with their descriptions, as JSON.
  std::function<std::string()> describe_settings;
};

/// References to the parts of a running server, all of which outlive it. Copied freely.
struct Context {
  kv::Database& store;
  docs::Catalog& catalog;
  jobs::Queue& queue;
  jobs::Acceptor& acceptor;
  workers::Registry& registry;
  const index::Kinds& kinds;
  const Clock& clock;
  Rng& rng;
  Uuids& uuids;
  Config& config;
  Metrics& metrics;
  Accounts& accounts;
  ThreadPool& pool;
  std::atomic<bool>& stopping;  // whether the server has begun to stop
  ThreadPool& backups;          // as many threads as backups may run at once
  backup::Restores& restores;
  docs::Uploads& uploads;
  compaction::Compactor& compactor;
  MemoryQuota<std::string>& body_memory;  // of requests (streamed_body.h)
  Tails& tails;
  IndexWaits& index_waits;
  index::Builder* builder;  // null if this process does not build indexes
  const ken::Ken* ken;      // null if this process does not run ken
  js::Pool& js_pool;
  FunctionThreads& function_threads;
  Validations& validations;
  std::string node;  // the name of this process in the cluster
  std::string server_uuid;
  std::string version;
  std::string javascript_version;                // of SpiderMonkey
  replicator::Replicator* replicator = nullptr;  // null if this process does not run replications
  const ken::Ken* triggers = nullptr;            // what ken is for triggers; null if it does not run them
  Statistics* statistics = nullptr;              // null in tests without a server
  NodeControl node_control;                      // empty in tests without a server
  const workers::Monitor* monitor = nullptr;     // null in tests without a server
  const History* history = nullptr;              // null in tests without a server
  const StaticFiles* web_files = nullptr;        // of /_utils; null if there are none
  const StaticFiles* openapi = nullptr;          // has openapi.json, if it was built with Node.js
  bool is_shared = false;                        // several processes may use the store
  bool serves = true;                            // false: only `/_up` and `/_node` are available
};

}  // namespace divan::api
