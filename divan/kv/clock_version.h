// Versions that stand for moments, so that versions grow from one life of a store to the next.
//
// A store that is put back to an earlier state (a backup, a copy of its files) must not repeat the versions
// that it gave out after that state: clients keep them, as places in feeds and as epochs. What was given out
// is not in the state. The clock is the one thing that has gone on: a store that begins with the microseconds
// since 1970, and gives out less than one version a microsecond from there, stays below what any later start
// begins with. docs/decisions/008-versions-follow-the-clock.md
#pragma once

#include "divan/kv/store.h"

namespace divan::kv {

/// A clock beyond this (the year 2112) is taken to be wrong. Half of the integers that JSON's readers
/// represent exactly (2^53) are left for versions to grow.
inline constexpr Version kMaxClockVersion = Version{1} << 52;

/// The version that stands for this moment; 0 if the clock is not to be believed.
constexpr Version version_of_clock(std::int64_t wall_ms) {
  return wall_ms >= 0 && wall_ms <= kMaxClockVersion / 1000 ? wall_ms * 1000 : 0;
}

}  // namespace divan::kv
