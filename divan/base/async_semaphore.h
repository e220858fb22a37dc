// A limit of how many coroutines do something at once.
#pragma once

#include <deque>
#include <utility>

#include "divan/base/async.h"
#include "divan/base/mutex.h"

namespace divan {

/// Has permits, which coroutines hold. Those that wait get them in the order in which they asked.
/// Thread-safe.
class AsyncSemaphore {
 public:
  /// Held by one coroutine, until it is destroyed.
  class Permit {
   public:
    explicit Permit(AsyncSemaphore& semaphore) : semaphore_(&semaphore) {}
    Permit(Permit&& other) noexcept : semaphore_(std::exchange(other.semaphore_, nullptr)) {}
    Permit& operator=(Permit&&) = delete;
    ~Permit() {
      if (semaphore_) semaphore_->release();
    }

   private:
    AsyncSemaphore* semaphore_;
  };

  AsyncSemaphore(std::size_t permits, MutexRank rank, const char* mutex_name)
      : mutex_(rank, mutex_name), free_(permits) {}
  AsyncSemaphore(const AsyncSemaphore&) = delete;
  AsyncSemaphore& operator=(const AsyncSemaphore&) = delete;

  /// co_await: a Permit. A coroutine that had to wait for it continues on a thread of the executor.
  auto acquire(Executor& executor) {
    struct Awaiter {
      AsyncSemaphore& semaphore;
      Executor& executor;
      bool await_ready() const { return false; }
      bool await_suspend(std::coroutine_handle<> coroutine) const {
        std::lock_guard lock(semaphore.mutex_);
        if (semaphore.free_ == 0) {
          semaphore.waiting_.emplace_back(&executor, coroutine);
          return true;
        }
        --semaphore.free_;
        return false;
      }
      Permit await_resume() const { return Permit(semaphore); }
    };
    return Awaiter{*this, executor};
  }

 private:
  void release() {
    std::unique_lock lock(mutex_);
    if (waiting_.empty()) {
      ++free_;
      return;
    }
    const auto [executor, coroutine] = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    executor->resume(coroutine);
  }

  Mutex mutex_;  // protects the members below
  std::size_t free_;
  std::deque<std::pair<Executor*, std::coroutine_handle<>>> waiting_;
};

}  // namespace divan
