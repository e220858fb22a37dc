// How often faults happen. Drawn anew for each seed: some worlds have none, some many, some only one kind,
// since frequent faults hide the effects of rare ones.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "divan/base/clock.h"
#include "divan/base/rng.h"

namespace divan::sim {

/// Chances in parts of a million.
struct Faults {
  // Of each commit.
  std::uint64_t conflict = 0;        // refused without a conflict
  std::uint64_t too_old = 0;         // also of each read
  std::uint64_t unknown_done = 0;    // committed, but the response is lost
  std::uint64_t unknown_undone = 0;  // not committed, and the response is lost
  std::uint64_t unknown_late = 0;    // committed later, unless it conflicts then, and the response is lost
  std::uint64_t stall = 0;           // the process is frozen for up to 5 s just before
  std::uint64_t crash_before = 0;    // the process crashes just before
  std::uint64_t crash_after = 0;     // or just after
  // Of each commit to an embedded store; 50 times as high when it is opened after a crash.
  std::uint64_t power_cut = 0;
  // Of each commit, and of each operation.
  std::uint64_t slow_commit = 0;
  std::uint64_t slow = 0;  // it takes up to `slowest`
  Duration slowest = std::chrono::milliseconds(100);
  // Of each read: the process is frozen for up to `longest_outage` just before.
  std::uint64_t stall_read = 0;
  std::uint64_t watch_lost = 0;  // of each watch: it is cancelled
  // Of each request to the other store and each response: it and later ones are lost for up to
  // `longest_outage`.
  std::uint64_t connection_lost = 0;
  // Mean times between such events in the world; 0: never.
  Duration crash_every{};
  Duration freeze_every{};
  Duration cut_off_every{};
  Duration pause_every{};                              // of the machine, with all processes
  Duration power_cut_every{};                          // of an embedded store's machine
  Duration longest_outage = std::chrono::seconds(20);  // of a crashed, frozen or cut off process

  static Faults random(Rng& rng);
};

/// A chance to be drawn, and its exclusive upper bound.
struct Drawn {
  std::uint64_t& chance;
  std::uint64_t highest;
};
/// Draws chances. Each is 0 in one of `never` worlds.
void draw(Rng& rng, std::uint64_t never, std::initializer_list<Drawn> chances);

/// Returns true with this chance.
inline bool happens(Rng& rng, std::uint64_t chance) { return chance > 0 && rng.below(1'000'000) < chance; }

/// Returns a duration that is uniform in [low, high].
inline Duration between(Rng& rng, Duration low, Duration high) {
  return low +
         Duration(static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>((high - low).count()) + 1)));
}

}  // namespace divan::sim
