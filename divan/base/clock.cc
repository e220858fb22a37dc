#include "divan/base/clock.h"

#include "divan/base/check.h"

namespace divan {

void Clock::sleep(Duration duration) const {
  Mutex mutex(MutexRank::sleep, "Clock::sleep()");
  ConditionVariable never;
  std::unique_lock lock(mutex);
  wait_until(lock, never, now() + duration, [] { return false; });
}

MonotonicTime SystemClock::now() const { return std::chrono::steady_clock::now(); }

std::int64_t SystemClock::wall_ms() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool SystemClock::wait_until(std::unique_lock<Mutex>& lock, ConditionVariable& changed,
                             MonotonicTime deadline, const std::function<bool()>& done) const {
  DIVAN_CHECK(lock.owns_lock(), "the caller does not hold the lock of the condition");
  if (deadline == MonotonicTime::max()) {
    changed.wait(lock, done);
    return true;
  }
  return changed.wait_until(lock, deadline, done);
}

MonotonicTime ManualClock::now() const { return MonotonicTime(Duration(elapsed_ns_.load())); }

std::int64_t ManualClock::wall_ms() const { return wall_start_ms_ + elapsed_ns_.load() / 1'000'000; }

bool ManualClock::wait_until(std::unique_lock<Mutex>& lock, ConditionVariable& changed,
                             MonotonicTime deadline, const std::function<bool()>& done) const {
  // advance() does not wake waiters, so each polls the virtual time.
  while (!done()) {
    if (now() >= deadline) return done();
    changed.wait_for(lock, std::chrono::milliseconds(1));
  }
  return true;
}

void ManualClock::advance(Duration by) {
  DIVAN_CHECK(by >= Duration(0), "the clock would go back by {} ns", -by.count());
  elapsed_ns_ += by.count();
}

}  // namespace divan
