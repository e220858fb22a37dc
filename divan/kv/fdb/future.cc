#include "divan/kv/fdb/future.h"

#include <memory>

#include "divan/base/mutex.h"

namespace divan::kv::fdb {
namespace {

struct Signal {
  Mutex mutex{MutexRank::fdb_future, "Future::wait()"};  // protects ready
  ConditionVariable changed;
  bool ready = false;
};

// On the client's thread, which must not be held up.
void wake(FdbFuture*, void* parameter) {
  // It may become ready after the waiting thread has timed out.
  const std::unique_ptr<std::shared_ptr<Signal>> signal(static_cast<std::shared_ptr<Signal>*>(parameter));
  std::lock_guard lock((*signal)->mutex);
  (*signal)->ready = true;
  (*signal)->changed.notify_all();
}

}  // namespace

bool Future::wait(const Clock& clock, MonotonicTime deadline) const {
  if (is_ready()) return true;
  const auto signal = std::make_shared<Signal>();
  auto parameter = std::make_unique<std::shared_ptr<Signal>>(signal);
  if (api_->future_set_callback(future_, &wake, parameter.get()) != 0) return false;
  static_cast<void>(parameter.release());  // wake() deletes it
  std::unique_lock lock(signal->mutex);
  return clock.wait_until(lock, signal->changed, deadline, [&] { return signal->ready; });
}

}  // namespace divan::kv::fdb
