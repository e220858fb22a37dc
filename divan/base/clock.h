// Injected time. Modules below the application do not read a clock or sleep themselves: they use a Clock, so
// that a test of an hour of leases and retries takes milliseconds.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>

#include "divan/base/mutex.h"

namespace divan {

using Duration = std::chrono::nanoseconds;
/// A point in time on a monotonic clock; comparable within one process only.
using MonotonicTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// A source of time. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  /// Monotonic time: for deadlines and durations.
  virtual MonotonicTime now() const = 0;

  /// Milliseconds since 1970-01-01 UTC, for times that users see and for schedules. May jump.
  virtual std::int64_t wall_ms() const = 0;

  /// Waits on `changed` until `done()` is true or the deadline has passed; returns `done()`. `lock` is held
  /// on entry, while `done` runs and on return. A deadline of MonotonicTime::max() never passes.
  virtual bool wait_until(std::unique_lock<Mutex>& lock, ConditionVariable& changed, MonotonicTime deadline,
                          const std::function<bool()>& done) const = 0;

  /// Blocks for `duration`.
  void sleep(Duration duration) const;
};

/// The system's clocks.
class SystemClock final : public Clock {
 public:
  MonotonicTime now() const override;
  std::int64_t wall_ms() const override;
  bool wait_until(std::unique_lock<Mutex>& lock, ConditionVariable& changed, MonotonicTime deadline,
                  const std::function<bool()>& done) const override;
};

/// A clock that advances only by advance(). For tests and the simulation.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(std::int64_t wall_ms = 1'700'000'000'000) : wall_start_ms_(wall_ms) {}

  MonotonicTime now() const override;
  std::int64_t wall_ms() const override;
  bool wait_until(std::unique_lock<Mutex>& lock, ConditionVariable& changed, MonotonicTime deadline,
                  const std::function<bool()>& done) const override;

  /// Advances both clocks. Waiters whose deadline has passed wake within a few real milliseconds.
  void advance(Duration by);

 private:
  std::atomic<std::int64_t> elapsed_ns_{0};
  std::int64_t wall_start_ms_;
};

}  // namespace divan
