// Time, injected. Nothing below the application reads a clock or sleeps by itself: it is given a Clock, so
// that an hour of leases and retries is a test of milliseconds.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace divan {

using Duration = std::chrono::nanoseconds;
/// A point on a clock that never goes back; comparable within one process only.
using MonotonicTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// A source of time. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  /// Monotonic time: for deadlines and durations.
  virtual MonotonicTime now() const = 0;

  /// Milliseconds since 1970-01-01 UTC, for what is shown to people or scheduled for a date. May jump.
  virtual std::int64_t wall_ms() const = 0;

  /// Waits on `changed` until `done()` or the deadline; answers `done()`. `lock` is held on entry, while
  /// `done` runs and on return. A deadline of MonotonicTime::max() never passes.
  virtual bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                          MonotonicTime deadline, const std::function<bool()>& done) const = 0;

  /// Blocks for `duration`.
  void sleep(Duration duration) const;
};

/// The machine's clocks.
class SystemClock final : public Clock {
 public:
  MonotonicTime now() const override;
  std::int64_t wall_ms() const override;
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                  MonotonicTime deadline, const std::function<bool()>& done) const override;
};

/// A clock that moves when it is told to. For tests and the simulation.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(std::int64_t wall_ms = 1'700'000'000'000) : wall_start_ms_(wall_ms) {}

  MonotonicTime now() const override;
  std::int64_t wall_ms() const override;
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                  MonotonicTime deadline, const std::function<bool()>& done) const override;

  /// Moves both clocks on. Waiters whose deadline has passed wake within a few real milliseconds.
  void advance(Duration by);

 private:
  std::atomic<std::int64_t> elapsed_ns_{0};
  std::int64_t wall_start_ms_;
};

}  // namespace divan
