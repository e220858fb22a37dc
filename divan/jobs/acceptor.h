// Waiting for jobs.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "divan/jobs/attempts.h"

namespace divan::jobs {

/// Wakes up when a type may have a job to accept. Thread-safe.
class JobWait {
 public:
  /// One try of accept(), in a transaction of its own that also sets watches: without jobs, `wait.on_wake`
  /// fires when there may be some.
  static Accepted try_accept(Queue& queue, kv::Database& store, std::span<const std::string> types,
                             const AcceptOptions& options, std::shared_ptr<JobWait>& wait);

  /// Calls `callback` once when a job is added or the like (at once if that has happened already).
  void on_wake(std::function<void()> callback);

 private:
  void wake();

  std::mutex mutex_;
  bool woken_ = false;
  std::function<void()> callback_;
  std::vector<std::shared_ptr<kv::Watch>> watches_;
};

/// Accepts jobs for a thread that waits for them. Thread-safe.
class Acceptor {
 public:
  Acceptor(Queue& queue, kv::Database& store, const Clock& clock)
      : queue_(queue), store_(store), clock_(clock) {}

  /// Blocks until it has accepted at least one job, or the deadline has passed or interrupt() was called:
  /// then nothing. Wakes when jobs are added, when scheduled ones become due and when places become free, not
  /// by polling.
  std::vector<AcceptedJob> accept(std::span<const std::string> types, const AcceptOptions& options,
                                  MonotonicTime deadline);

  /// Makes present and later calls of accept() answer nothing at once.
  void interrupt();

 private:
  Queue& queue_;
  kv::Database& store_;
  const Clock& clock_;
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool interrupted = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace divan::jobs
