// A thread pool that divides its threads among the owners of tasks.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "divan/base/mutex.h"

namespace divan {

/// Runs tasks that may take long on a fixed number of threads. Each task has a key, such as the number of its
/// database. Tasks with the same key run one after the other, in the order in which they were submitted, and
/// keys take turns: so a key with many or slow tasks holds one thread. Thread-safe. A task should not throw:
/// its exception is logged and dropped. The destructor waits for all submitted tasks.
class FairThreadPool {
 public:
  using Key = std::int64_t;

  /// `name` (at most 15 characters) is the threads' name in a debugger.
  FairThreadPool(const std::string& name, std::size_t threads);
  ~FairThreadPool();
  FairThreadPool(const FairThreadPool&) = delete;
  FairThreadPool& operator=(const FairThreadPool&) = delete;

  /// Queues a task. Returns false if the pool is stopping.
  bool submit(Key key, std::function<void()> task);

  /// Rejects further tasks, runs the queued ones, and joins the threads. Idempotent; must not be called by a
  /// task.
  void stop();

 private:
  using Tasks = std::deque<std::function<void()>>;

  void work();

  Mutex mutex_{MutexRank::thread_pool, "FairThreadPool::mutex_"};  // protects the members below
  ConditionVariable wake_;
  std::map<Key, Tasks> tasks_;  // by key; a key with a running task has an entry, too
  std::deque<Key> ready_;       // keys with tasks, of which none runs
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace divan
