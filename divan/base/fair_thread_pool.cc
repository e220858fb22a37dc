#include "divan/base/fair_thread_pool.h"

#include <pthread.h>

#include "divan/base/check.h"
#include "divan/base/log.h"

namespace divan {

FairThreadPool::FairThreadPool(const std::string& name, std::size_t threads) {
  DIVAN_CHECK(threads > 0, "a thread pool has no threads");
  threads_.reserve(threads);
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { work(); });
    pthread_setname_np(threads_.back().native_handle(), name.substr(0, 15).c_str());
  }
}

FairThreadPool::~FairThreadPool() {
  stop();
  DIVAN_CHECK(tasks_.empty(), "the tasks of {} keys were not run", tasks_.size());
}

bool FairThreadPool::submit(Key key, std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return false;
    const auto [entry, is_new] = tasks_.try_emplace(key);
    entry->second.push_back(std::move(task));
    if (!is_new) return true;
    ready_.push_back(key);
  }
  wake_.notify_one();
  return true;
}

void FairThreadPool::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void FairThreadPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (!stopping_ && ready_.empty()) wake_.wait(lock);
    if (ready_.empty()) return;
    const Key key = ready_.front();
    ready_.pop_front();
    // Its entry stays while the task runs; references to entries stay valid.
    Tasks& tasks = tasks_.find(key)->second;
    auto task = std::move(tasks.front());
    tasks.pop_front();
    lock.unlock();
    try {
      task();
    } catch (const std::exception& error) { log::error("A background task failed: {}", error.what()); }
    task = nullptr;
    lock.lock();
    if (tasks.empty()) {
      tasks_.erase(key);
    } else {
      ready_.push_back(key);
      wake_.notify_one();
    }
  }
}

}  // namespace divan
