// How often faults happen. Drawn anew for every seed: some worlds have none, some have many, some have one
// kind only, since rare faults hide behind frequent ones.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "divan/base/clock.h"
#include "divan/base/rng.h"

namespace divan::sim {

/// Chances in parts of a million.
struct Faults {
  // Of each commit.
  std::uint64_t conflict = 0;        // refused although nothing conflicts
  std::uint64_t too_old = 0;         // of each read, too
  std::uint64_t unknown_done = 0;    // carried out, but the answer is lost
  std::uint64_t unknown_undone = 0;  // not carried out, and the answer is lost
  std::uint64_t unknown_late = 0;    // carried out later, unless it is refused then, and the answer is lost
  std::uint64_t stall = 0;           // the process stands still for up to 5 s just before
  std::uint64_t crash_before = 0;    // the process crashes just before
  std::uint64_t crash_after = 0;     // or just after
  // Of each commit to an embedded store, and of each time that it is opened after a crash.
  std::uint64_t power_cut = 0;
  // Of each operation.
  std::uint64_t slow = 0;  // takes up to `slowest`
  Duration slowest = std::chrono::milliseconds(100);
  // Of each read: the process stands still, for up to `longest_absence`, just before or just after.
  std::uint64_t stall_read = 0;
  std::uint64_t watch_lost = 0;  // of each watch: it ends without an answer
  // Mean times between such events in the whole world; 0: never.
  Duration crash_every{};
  Duration freeze_every{};
  Duration cut_off_every{};
  Duration pause_every{};                               // of the machine, with all processes
  Duration power_cut_every{};                           // of an embedded store's machine
  Duration longest_absence = std::chrono::seconds(20);  // of a crashed, frozen or cut off process

  static Faults random(Rng& rng);
};

/// A chance to be drawn, and what it is less than.
struct Drawn {
  std::uint64_t& chance;
  std::uint64_t highest;
};
/// Draws chances. In one world of `never`, each is 0.
void draw(Rng& rng, std::uint64_t never, std::initializer_list<Drawn> chances);

/// Whether something with this chance happens now.
inline bool happens(Rng& rng, std::uint64_t chance) { return chance > 0 && rng.below(1'000'000) < chance; }

/// Uniform in [low, high].
inline Duration between(Rng& rng, Duration low, Duration high) {
  return low +
         Duration(static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>((high - low).count()) + 1)));
}

}  // namespace divan::sim
