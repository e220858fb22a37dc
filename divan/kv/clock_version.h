// Versions that correspond to times, so that they grow even if a store is put back to an earlier state.
//
// A store that is put back to an earlier state (a backup, a copy of its files) must not repeat the versions
// that it assigned after that state: clients keep them, as positions in feeds and as epochs. The state does
// not contain them, but the clock has advanced: a store that begins with the microseconds since 1970, and
// assigns less than one version a microsecond from then on, stays below the version with which any later
// start begins. docs/decisions/008-versions-follow-the-clock.md
#pragma once

#include "divan/kv/store.h"

namespace divan::kv {

/// A clock beyond this (the year 2112) is taken to be wrong. Half of the integers that JSON's readers
/// represent exactly (2^53) are left for versions to grow.
inline constexpr Version kMaxClockVersion = Version{1} << 52;

/// The version that corresponds to this time; 0 if the clock is implausible.
constexpr Version version_of_clock(std::int64_t wall_ms) {
  return wall_ms >= 0 && wall_ms <= kMaxClockVersion / 1000 ? wall_ms * 1000 : 0;
}

}  // namespace divan::kv
