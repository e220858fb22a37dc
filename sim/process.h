// A process of the simulated world.
#pragma once

#include <memory>
#include <string>

#include "divan/base/clock.h"
#include "divan/base/rng.h"

namespace divan::sim {

/// A process, without its memory: what survives its crashes.
struct Process {
  std::string name;
  std::unique_ptr<Clock> clock;
  std::unique_ptr<SeededRng> rng;
  /// Tasks of earlier incarnations are dead.
  int incarnation = 0;
  bool alive = true;
  /// Tasks of all incarnations that have not ended.
  int tasks = 0;
  // In true time: until then its tasks do not run; until then it does not reach the store.
  MonotonicTime frozen_until{};
  MonotonicTime cut_off_until{};
};

}  // namespace divan::sim
