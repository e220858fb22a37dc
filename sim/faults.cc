#include "sim/faults.h"

namespace divan::sim {

using std::chrono::seconds;

Faults Faults::random(Rng& rng) {
  Faults faults;
  // Of eight worlds, one has no faults but those that the actors make for each other.
  if (rng.below(8) == 0) return faults;
  const auto chance = [&](std::uint64_t highest) { return rng.below(2) == 0 ? 0 : rng.below(highest); };
  const auto every = [&] { return rng.below(2) == 0 ? Duration() : between(rng, seconds(3), seconds(60)); };
  faults.conflict = chance(200'000);
  faults.too_old = chance(20'000);
  faults.unknown_done = chance(150'000);
  faults.unknown_undone = chance(50'000);
  faults.unknown_late = chance(50'000);
  faults.stall = chance(100'000);
  faults.crash_before = chance(4'000);
  faults.crash_after = chance(4'000);
  faults.slow = chance(100'000);
  if (rng.below(4) == 0) faults.slowest = seconds(7);
  faults.watch_lost = chance(200'000);
  faults.stall_read = chance(3'000);
  faults.crash_every = every();
  faults.freeze_every = every();
  faults.cut_off_every = every();
  faults.pause_every = every();
  faults.longest_absence = between(rng, seconds(1), seconds(40));
  return faults;
}

}  // namespace divan::sim
