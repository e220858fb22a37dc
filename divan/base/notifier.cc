#include "divan/base/notifier.h"

namespace divan {

void Notifier::notify() {
  {
    std::lock_guard lock(mutex_);
    notified_ = true;
    if (pausing_) return;
  }
  changed_.notify_all();
}

void Notifier::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

bool Notifier::stopped() const {
  std::lock_guard lock(mutex_);
  return stopped_;
}

bool Notifier::wait_until(const Clock& clock, MonotonicTime deadline) {
  std::unique_lock lock(mutex_);
  clock.wait_until(lock, changed_, deadline, [this] { return stopped_ || notified_; });
  notified_ = false;
  return !stopped_;
}

bool Notifier::pause_until(const Clock& clock, MonotonicTime deadline) {
  std::unique_lock lock(mutex_);
  pausing_ = true;
  clock.wait_until(lock, changed_, deadline, [this] { return stopped_; });
  pausing_ = false;
  return !stopped_;
}

bool Notifier::notified() const {
  std::lock_guard lock(mutex_);
  return notified_ || stopped_;
}

void Notifier::clear() {
  std::lock_guard lock(mutex_);
  notified_ = false;
}

}  // namespace divan
