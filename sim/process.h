// A process of the simulated world.
#pragma once

#include <memory>
#include <string>

#include "divan/base/clock.h"
#include "divan/base/rng.h"

namespace divan::sim {

/// Everything about a process that survives its crashes.
struct Process {
  std::string name;
  std::unique_ptr<Clock> clock;
  std::unique_ptr<SeededRng> rng;
  /// Which life of the process this is; tasks of earlier ones are dead.
  int life = 0;
  bool alive = true;
  // In true time: nothing of it runs until then; it does not reach the store until then.
  MonotonicTime frozen_until{};
  MonotonicTime cut_off_until{};
};

}  // namespace divan::sim
