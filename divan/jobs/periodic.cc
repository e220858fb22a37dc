#include "divan/jobs/periodic.h"

#include "divan/jobs/queue.h"

namespace divan::jobs {

void begin_next_occurrence(Job& job, std::int64_t now) {
  const auto schedule = Schedule::of_json(job.schedule);
  make_pending(job, schedule.next_after(std::max(now, job.scheduled_at)), now);
  job.attempt = job.failures = 0;
}

bool is_to_be_skipped(const Job& job, std::int64_t now) {
  // What was asked for explicitly, to run at once, has no tick.
  if (!is_periodic(job) || job.attempt > 0 || job.scheduled_at == 0) return false;
  const auto schedule = Schedule::of_json(job.schedule);
  return schedule.missed() == Missed::skip && schedule.next_after(job.scheduled_at) <= now;
}

}  // namespace divan::jobs
