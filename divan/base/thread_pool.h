// A bounded thread pool, which runs the synchronous core.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "divan/base/async.h"
#include "divan/base/mutex.h"

namespace divan {

/// Runs tasks on a fixed number of threads, in FIFO order. Thread-safe. A task should not throw: its
/// exception is logged and dropped. The destructor waits for all submitted tasks.
class ThreadPool final : public Executor {
 public:
  /// `name` (at most 15 characters) is the threads' name in a debugger. At most `max_queued` tasks wait for a
  /// thread.
  ThreadPool(const std::string& name, std::size_t threads, std::size_t max_queued);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Queues a task. Returns false if the queue is full or the pool is stopping.
  bool submit(std::function<void()> task);

  /// Queues a coroutine, whether or not the queue is full: it has been accepted before. The pool must not
  /// have been stopped.
  void resume(std::coroutine_handle<> coroutine) override;

  /// Rejects further tasks, runs the queued ones, and joins the threads. Idempotent; must not be called by a
  /// task.
  void stop();

  std::size_t queued() const;

 private:
  void work();
  bool needs_waking();

  const std::size_t max_queued_;
  mutable Mutex mutex_{MutexRank::thread_pool, "ThreadPool::mutex_"};  // protects the members below
  ConditionVariable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::size_t idle_ = 0;    // threads that wait for a task
  std::size_t waking_ = 0;  // idle threads that were notified and do not run yet
  std::vector<std::thread> threads_;
};

}  // namespace divan
