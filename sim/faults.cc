#include "sim/faults.h"

namespace divan::sim {

using std::chrono::seconds;

void draw(Rng& rng, std::uint64_t never, std::initializer_list<Drawn> chances) {
  for (const auto& [chance, highest] : chances) chance = rng.below(never) == 0 ? 0 : rng.below(highest);
}

Faults Faults::random(Rng& rng) {
  Faults faults;
  // One world in eight has no faults of its store and processes.
  if (rng.below(8) == 0) return faults;
  const auto every = [&] { return rng.below(2) == 0 ? Duration() : between(rng, seconds(3), seconds(60)); };
  draw(rng, 2,
       {{faults.conflict, 200'000},
        {faults.too_old, 20'000},
        {faults.unknown_done, 150'000},
        {faults.unknown_undone, 50'000},
        {faults.stall, 100'000},
        {faults.crash_before, 4'000},
        {faults.crash_after, 4'000},
        {faults.power_cut, 4'000},
        {faults.slow_commit, 100'000},
        {faults.slow, 100'000},
        {faults.watch_lost, 200'000},
        {faults.stall_read, 3'000},
        {faults.connection_lost, 50'000}});
  if (rng.below(4) == 0) faults.slowest = seconds(7);
  faults.crash_every = every();
  faults.freeze_every = every();
  faults.cut_off_every = every();
  faults.pause_every = every();
  faults.power_cut_every = every();
  faults.longest_outage = between(rng, seconds(1), seconds(40));
  return faults;
}

}  // namespace divan::sim
