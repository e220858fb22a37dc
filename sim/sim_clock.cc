#include "sim/sim_clock.h"

#include "sim/world.h"

namespace divan::sim {
namespace {

constexpr std::int64_t kWallStart = 1'700'000'000'000;

}  // namespace

MonotonicTime SimClock::now() const { return world_.now() + origin_; }

std::int64_t SimClock::wall_ms() const {
  const auto elapsed = static_cast<double>(world_.now().time_since_epoch().count()) / 1e6;
  return kWallStart + wall_offset_ms_ + static_cast<std::int64_t>(elapsed * wall_drift_);
}

bool SimClock::wait_until(std::unique_lock<Mutex>& lock, ConditionVariable&, MonotonicTime deadline,
                          const std::function<bool()>& done) const {
  return world_.wait(&lock, deadline == MonotonicTime::max() ? deadline : deadline - origin_, done);
}

}  // namespace divan::sim
