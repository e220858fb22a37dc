// Sends the heartbeats of the workers inside this process, such as builders of indexes, and evicts all others
// that are silent, including those that are connected to this process by HTTP.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "divan/base/worker_loop.h"
#include "divan/workers/observer.h"

namespace divan::workers {

class Monitor;

/// Returns how busy a worker is, as a JSON object. Called before each heartbeat, which stores the result, by
/// one thread at a time.
using Load = std::function<std::string()>;

/// A worker of this process; it is registered while this object lives. Thread-safe; the monitor must outlive
/// it.
class LocalWorker {
 public:
  ~LocalWorker();
  LocalWorker(const LocalWorker&) = delete;
  LocalWorker& operator=(const LocalWorker&) = delete;

  /// The present registration. It changes when the worker was evicted (because it was frozen for longer than
  /// its timeout, or could not reach the store) and registered again. Jobs of the earlier registration no
  /// longer belong to the worker.
  WorkerRef ref() const;

 private:
  friend class Monitor;
  LocalWorker(Monitor& monitor, std::uint64_t number, WorkerRef ref, std::string options, Duration timeout,
              Load load);

  Monitor& monitor_;
  const std::uint64_t number_;  // in the order in which they were added
  const std::string options_;
  const Duration timeout_;
  const Load load_;
  mutable Mutex mutex_{MutexRank::local_worker, "LocalWorker::mutex_"};  // protects ref_
  WorkerRef ref_;
};

/// One for each process. Thread-safe. The store, registry and clock must outlive it.
class Monitor {
 public:
  Monitor(kv::Database& store, Registry& registry, const Clock& clock, Rng& rng);
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// Registers a worker and sends its heartbeats. Without `load`, its load is unknown.
  std::unique_ptr<LocalWorker> add(std::string_view role, std::string_view id, std::string_view options,
                                   Duration timeout = kDefaultTimeout, Load load = {});

  /// Starts the thread that calls step() when there is something to do.
  void start();

  /// Sends the heartbeats that are due. Then, if a poll is due, reads the heartbeats of other workers and
  /// evicts those that are silent. Returns when the next step is due, unless woken() becomes true before.
  /// Errors of the store are logged, and the next step tries again.
  MonotonicTime step();

  /// The silence so far of the workers of a role that are outside this process (observer.h). Blocks during a
  /// step, which may wait for the store.
  std::map<WorkerRef, Duration> silences(std::string_view role) const;

  /// Returns true if a step is due before its time, since workers have come or gone.
  bool woken() const;

 private:
  friend class LocalWorker;
  void forget(LocalWorker& worker);
  // Returns when the next one is due.
  MonotonicTime send_heartbeats(MonotonicTime now);
  std::set<WorkerRef> own() const;

  kv::Database& store_;
  Registry& registry_;
  const Clock& clock_;
  Rng& rng_;

  // One step at a time; protects observer_.
  mutable Mutex stepping_{MutexRank::monitor_step, "Monitor::stepping_"};
  Observer observer_;

  mutable Mutex mutex_{MutexRank::monitor, "Monitor::mutex_"};  // protects the two members below
  // Not by address, so that heartbeats have the same order in each run.
  struct ByNumber {
    bool operator()(const LocalWorker* a, const LocalWorker* b) const { return a->number_ < b->number_; }
  };
  std::map<LocalWorker*, MonotonicTime, ByNumber> local_;  // when the next heartbeat is due
  std::uint64_t added_ = 0;

  WorkerLoop loop_;  // calls step()
};

}  // namespace divan::workers
