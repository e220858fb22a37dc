// Periodic jobs: one job that runs at each tick of a schedule.
//
// A periodic job is one job in the store, so it runs once for any number of servers. An *occurrence* is its
// run for one tick: the job is pending until the tick, runs, and is retried if it fails. When the occurrence
// has ended in any way, the job is pending until the next tick after now. `scheduled_at` is the occurrence's
// tick until the occurrence has ended, so ticks only grow, even if servers' clocks differ.
#pragma once

#include "divan/jobs/types.h"

namespace divan::jobs {

/// The id of the job of a type's own schedule; users' ids must not begin with an underscore.
inline constexpr std::string_view kPeriodicId = "_periodic";

inline bool is_periodic(const Job& job) { return !job.schedule.empty(); }

/// Ends the job's occurrence: the job is pending until the first tick after both `now` and the occurrence's
/// tick.
void begin_next_occurrence(Job& job, std::int64_t now);

/// Returns true if the occurrence must not run: it was not started before the following tick, and the
/// schedule skips missed occurrences.
bool is_to_be_skipped(const Job& job, std::int64_t now);

}  // namespace divan::jobs
