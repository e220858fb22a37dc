// Keeps a process's own workers alive, and finds out whose heartbeats stand still.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "divan/workers/registry.h"

namespace divan::workers {

class Monitor;

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
  LocalWorker(Monitor& monitor, WorkerRef ref, std::string options, Duration timeout);

  Monitor& monitor_;
  const std::string options_;
  const Duration timeout_;
  mutable std::mutex mutex_;
  WorkerRef ref_;
};

/// One a process. Thread-safe. The store, registry and clock must outlive it.
class Monitor {
 public:
  Monitor(kv::Database& store, Registry& registry, const Clock& clock, Rng& rng);
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// Registers a worker and keeps its heartbeat going.
  std::unique_ptr<LocalWorker> add(std::string_view role, std::string_view id, std::string_view options,
                                   Duration timeout = kDefaultTimeout);

  /// Starts the thread that calls step() when there is something to do.
  void start();

  /// Sends the heartbeats that are due, then looks at everybody's and evicts the dead. Answers when to look
  /// again. Errors of the store are logged: the next step tries again.
  MonotonicTime step();

 private:
  friend class LocalWorker;
  struct Observation {
    std::int64_t counter;
    MonotonicTime since;
  };

  void forget(LocalWorker& worker);
  void send_heartbeats(MonotonicTime now);
  // Answers the shortest timeout that anybody has.
  Duration observe();
  void run();

  kv::Database& store_;
  Registry& registry_;
  const Clock& clock_;
  Rng& rng_;

  std::mutex stepping_;  // one step at a time; taken before mutex_
  std::map<WorkerRef, Observation> observed_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<LocalWorker*, MonotonicTime> local_;  // when the next heartbeat is due
  bool stopping_ = false;
  bool woken_ = false;
  std::thread thread_;
};

}  // namespace divan::workers
