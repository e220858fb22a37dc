// What routes work with.
#pragma once

#include <atomic>

#include "divan/api/accounts.h"
#include "divan/backup/restores.h"
#include "divan/base/config.h"
#include "divan/base/metrics.h"
#include "divan/base/thread_pool.h"
#include "divan/docs/catalog.h"
#include "divan/index/builds.h"
#include "divan/jobs/acceptor.h"
#include "divan/js/pool.h"
#include "divan/workers/registry.h"

namespace divan::ken {
class Ken;
}

namespace divan::api {

class IndexWaits;
class Tails;

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
  Config& config;
  Metrics& metrics;
  Accounts& accounts;
  ThreadPool& pool;
  std::atomic<bool>& stopping;  // whether the server has begun to stop
  ThreadPool& backups;          // a thread for each that is being taken
  backup::Restores& restores;
  Tails& tails;
  IndexWaits& index_waits;
  index::Builder* builder;  // null where this process builds no indexes
  const ken::Ken* ken;      // null where this process has none
  const js::Pool& js_pool;
  std::string node;  // this process's name among those on the store
  std::string server_uuid;
  std::string version;
  bool serves = true;  // false: `/_up` and `/_node` are all that is answered here
};

}  // namespace divan::api
