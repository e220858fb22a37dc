// A bounded thread pool: where the synchronous core runs.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace divan {

/// Runs tasks on a fixed number of threads, first come, first served. Thread-safe. A task must not throw:
/// what it throws is logged and lost. The destructor waits for all tasks that were taken.
class ThreadPool {
 public:
  /// `name` (at most 15 characters) is what a debugger shows. At most `max_queued` tasks wait for a thread.
  ThreadPool(std::string name, std::size_t threads, std::size_t max_queued);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Takes a task, or refuses it (false) when too many wait or the pool is stopping.
  bool submit(std::function<void()> task);

  /// Takes no more tasks, runs those that wait, and joins the threads. Idempotent; not to be called from a
  /// task.
  void stop();

  std::size_t queued() const;

 private:
  void work();
  bool needs_waking();

  const std::size_t max_queued_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::size_t idle_ = 0;    // threads that wait for a task
  std::size_t waking_ = 0;  // those of them that have been woken and have not come yet
  std::vector<std::thread> threads_;
};

}  // namespace divan
