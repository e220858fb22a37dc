// A process of the simulated world, and its clocks.
#pragma once

#include <memory>
#include <string>

#include "divan/base/clock.h"
#include "divan/base/rng.h"

namespace divan::sim {

class World;

/// The clocks of one machine: the monotonic one starts anywhere, the wall clock is off and drifts.
class SimClock final : public Clock {
 public:
  SimClock(World& world, Duration origin, std::int64_t wall_offset_ms, double wall_drift)
      : world_(world), origin_(origin), wall_offset_ms_(wall_offset_ms), wall_drift_(wall_drift) {}

  MonotonicTime now() const override;
  std::int64_t wall_ms() const override;
  /// Gives way to other tasks. `changed` is not used: the world asks `done` after every step.
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                  MonotonicTime deadline, const std::function<bool()>& done) const override;

 private:
  World& world_;
  Duration origin_;
  std::int64_t wall_offset_ms_;
  double wall_drift_;
};

/// Everything about a process that survives its crashes.
struct Process {
  std::string name;
  std::unique_ptr<SimClock> clock;
  std::unique_ptr<SeededRng> rng;
  /// Which life of the process this is; tasks of earlier ones are dead.
  int life = 0;
  bool alive = true;
  // In true time: nothing of it runs until then; it does not reach the store until then.
  MonotonicTime frozen_until{};
  MonotonicTime cut_off_until{};
};

}  // namespace divan::sim
