// The clocks of the simulated world.
#pragma once

#include "divan/base/clock.h"

namespace divan::sim {

class World;

/// The clocks of one machine. The monotonic clock starts anywhere; the wall clock has an offset and a drift.
class SimClock final : public Clock {
 public:
  SimClock(World& world, Duration origin, std::int64_t wall_offset_ms, double wall_drift)
      : world_(world), origin_(origin), wall_offset_ms_(wall_offset_ms), wall_drift_(wall_drift) {}

  MonotonicTime now() const override;
  std::int64_t wall_ms() const override;
  /// Yields to other tasks. `changed` is not used: the world calls `done` after each step.
  bool wait_until(std::unique_lock<Mutex>& lock, ConditionVariable& changed, MonotonicTime deadline,
                  const std::function<bool()>& done) const override;

 private:
  World& world_;
  Duration origin_;
  std::int64_t wall_offset_ms_;
  double wall_drift_;
};

}  // namespace divan::sim
