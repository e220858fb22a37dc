#include "divan/base/thread_pool.h"

#include <pthread.h>

#include "divan/base/check.h"
#include "divan/base/log.h"

namespace divan {
namespace {

// The most threads that are being woken at a time. With more, each of many small tasks costs a wake-up; with
// one, threads start too slowly if their tasks block.
constexpr std::size_t kMaxWaking = 2;

}  // namespace

ThreadPool::ThreadPool(const std::string& name, std::size_t threads, std::size_t max_queued)
    : max_queued_(max_queued) {
  DIVAN_CHECK(threads > 0, "a thread pool has no threads");
  threads_.reserve(threads);
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { work(); });
    pthread_setname_np(threads_.back().native_handle(), name.substr(0, 15).c_str());
  }
}

ThreadPool::~ThreadPool() {
  stop();
  DIVAN_CHECK(tasks_.empty(), "{} queued tasks were not run", tasks_.size());
}

bool ThreadPool::submit(std::function<void()> task) {
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || tasks_.size() >= max_queued_) return false;
    tasks_.push_back(std::move(task));
    wake = needs_waking();
  }
  if (wake) wake_.notify_one();
  return true;
}

void ThreadPool::resume(std::coroutine_handle<> coroutine) {
  // With the lock to the end: when the coroutine has ended, the pool may be destroyed.
  std::lock_guard lock(mutex_);
  DIVAN_CHECK(!stopping_, "a coroutine is resumed on threads that have been stopped");
  tasks_.emplace_back([coroutine] { coroutine.resume(); });
  if (needs_waking()) wake_.notify_one();
}

// Returns true if an idle thread must be woken now. A thread that wakes up wakes the next one if tasks are
// still queued: threads that are awake already do most of a burst of small tasks.
bool ThreadPool::needs_waking() {
  if (waking_ >= kMaxWaking || waking_ >= idle_ || waking_ >= tasks_.size()) return false;
  ++waking_;
  DIVAN_CHECK(waking_ <= idle_, "{} threads are being woken, and {} are idle", waking_, idle_);
  return true;
}

void ThreadPool::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

std::size_t ThreadPool::queued() const {
  std::lock_guard lock(mutex_);
  return tasks_.size();
}

void ThreadPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (!stopping_ && tasks_.empty()) {
      ++idle_;
      wake_.wait(lock);
      DIVAN_CHECK(idle_ > 0, "an idle thread was not counted");
      --idle_;
      if (waking_ > 0) --waking_;
      DIVAN_CHECK(waking_ <= idle_, "{} threads are being woken, and {} are idle", waking_, idle_);
    }
    if (tasks_.empty()) return;
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    const bool wake = needs_waking();
    lock.unlock();
    if (wake) wake_.notify_one();
    try {
      task();
    } catch (const std::exception& e) { log::error("A background task failed: {}", e.what()); }
    task = nullptr;
    lock.lock();
  }
}

}  // namespace divan
