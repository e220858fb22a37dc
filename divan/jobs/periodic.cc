#include "divan/jobs/periodic.h"

#include "divan/base/log.h"
#include "divan/jobs/queue.h"

namespace divan::jobs {
namespace {

// A job in a time zone that this machine does not know is looked at again after this.
constexpr std::int64_t kTryAgainMs = 3'600'000;

}  // namespace

void begin_next_occurrence(Job& job, std::int64_t now) {
  std::int64_t tick = now + kTryAgainMs;
  try {
    tick = Schedule::of_json(job.schedule).next_after(std::max(now, job.scheduled_at));
  } catch (const Error& error) {
    log::error("Job {}/{} waits, for when it is to run is not known: {}", job.type, job.id, error.reason());
  }
  make_pending(job, tick, now);
  job.attempt = job.failures = 0;
}

bool is_to_be_skipped(const Job& job, std::int64_t now) {
  // What was asked for explicitly, to run at once, has no tick.
  if (!is_periodic(job) || job.attempt > 0 || job.scheduled_at == 0) return false;
  try {
    const auto schedule = Schedule::of_json(job.schedule);
    return schedule.missed() == Missed::skip && schedule.next_after(job.scheduled_at) <= now;
  } catch (const Error&) { return true; }  // as begin_next_occurrence() says
}

}  // namespace divan::jobs
