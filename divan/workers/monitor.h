// Keeps a process's own workers alive, and finds out whose heartbeats stand still.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "divan/base/worker_loop.h"
#include "divan/workers/observer.h"

namespace divan::workers {

class Monitor;

/// How busy a worker is, a JSON object. Called before each heartbeat, which carries it, by one thread at a
/// time.
using Load = std::function<std::string()>;

/// A worker of this process; it is registered while this object lives. Thread-safe; the monitor must outlive
/// it.
class LocalWorker {
 public:
  ~LocalWorker();
  LocalWorker(const LocalWorker&) = delete;
  LocalWorker& operator=(const LocalWorker&) = delete;

  /// The present registration: another one after the worker was evicted (frozen for longer than its timeout,
  /// or cut off from the store) and registered again. What it did under the earlier one is no longer its own.
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
  mutable std::mutex mutex_;
  WorkerRef ref_;
};

/// One a process. Thread-safe. The store, registry and clock must outlive it.
class Monitor {
 public:
  Monitor(kv::Database& store, Registry& registry, const Clock& clock, Rng& rng);
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// Registers a worker and keeps its heartbeat going. Without `load` it does not tell how busy it is.
  std::unique_ptr<LocalWorker> add(std::string_view role, std::string_view id, std::string_view options,
                                   Duration timeout = kDefaultTimeout, Load load = {});

  /// Starts the thread that calls step() when there is something to do.
  void start();

  /// Sends the heartbeats that are due, then looks at everybody else's, if it is time to, and evicts the
  /// dead. Answers when the next step is due, if it is not woken() before. Errors of the store are logged:
  /// the next step tries again.
  MonotonicTime step();

  /// Whether there is a reason for a step before its time: workers have come or gone.
  bool woken() const;

 private:
  friend class LocalWorker;
  void forget(LocalWorker& worker);
  // Answers when the next one is due.
  MonotonicTime send_heartbeats(MonotonicTime now);
  std::set<WorkerRef> own() const;

  kv::Database& store_;
  Registry& registry_;
  const Clock& clock_;
  Rng& rng_;

  std::mutex stepping_;  // one step at a time; taken before mutex_
  Observer observer_;

  mutable std::mutex mutex_;
  // Not by address: the same history gives the same order of heartbeats.
  struct ByNumber {
    bool operator()(const LocalWorker* a, const LocalWorker* b) const { return a->number_ < b->number_; }
  };
  std::map<LocalWorker*, MonotonicTime, ByNumber> local_;  // when the next heartbeat is due
  std::uint64_t added_ = 0;

  WorkerLoop loop_;  // calls step()
};

}  // namespace divan::workers
