// Periodic jobs: one job that runs at each tick of a schedule.
//
// A periodic job is one row like any other, so over any number of servers there is one of it. Its
// *occurrence* is what it does for one tick: it is pending until the tick, runs, is tried again when it
// fails, and when it has ended, however, the job is pending at the next tick after now. `scheduled_at` is the
// occurrence's tick and stays that until it has ended, so ticks only grow, also where servers' clocks differ.
#pragma once

#include "divan/jobs/types.h"

namespace divan::jobs {

/// The id of the job that a type's own schedule makes; users' ids do not begin with an underscore.
inline constexpr std::string_view kPeriodicId = "_periodic";

inline bool is_periodic(const Job& job) { return !job.schedule.empty(); }

/// The job's occurrence has ended: it is pending at the next tick after both `now` and the occurrence's.
void begin_next_occurrence(Job& job, std::int64_t now);

/// Returns true if the occurrence is not to run, since nobody has begun it before the tick after it and its
/// schedule says that it is skipped then.
bool is_to_be_skipped(const Job& job, std::int64_t now);

}  // namespace divan::jobs
