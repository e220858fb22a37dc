// The dependencies of routes.
#pragma once

#include <atomic>

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

namespace divan::api {

class FunctionThreads;
class IndexWaits;
class Tails;
class Validations;

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
  ThreadPool& backups;          // as many threads as backups may run at once
  backup::Restores& restores;
  docs::Uploads& uploads;
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
  bool serves = true;  // false: only `/_up` and `/_node` are available
};

}  // namespace divan::api
