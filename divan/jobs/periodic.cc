#include "divan/jobs/periodic.h"

#include "divan/base/check.h"
#include "divan/base/log.h"
#include "divan/jobs/schedule.h"

namespace divan::jobs {
namespace {

// A job whose schedule cannot be evaluated on this machine is checked again after this time.
constexpr std::int64_t kTryAgainMs = 60'000;
// The prefix of such a job's last error, by which it is recognized. It is stored with the job, so it must not
// change.
constexpr std::string_view kUnknownSchedule = "It is not known when the job is to run next: ";

// Returns true if the job's due time is not a tick, but the time of the next check.
bool waits_for_schedule(const Job& job) { return job.last_error.starts_with(kUnknownSchedule); }

}  // namespace

void begin_next_occurrence(Job& job, std::int64_t now) {
  std::int64_t tick = now + kTryAgainMs;
  try {
    tick = Schedule::of_json(job.schedule).next_after(std::max(now, job.scheduled_at));
    if (waits_for_schedule(job)) job.last_error.clear();
  } catch (const Error& error) {
    // For example, the time zone is unknown on this machine.
    std::string reason = std::string(kUnknownSchedule) + error.reason();
    if (job.last_error != reason) log::error("Job {}/{} waits. {}", job.type, job.id, reason);
    job.last_error = std::move(reason);
  }
  DIVAN_CHECK(tick > now, "the next occurrence is {} ms ago", now - tick);
  make_pending(job, tick, now);
  job.attempt = job.failures = job.lost = 0;
}

bool is_to_be_skipped(const Job& job, std::int64_t now) {
  // A job that was resubmitted to run at once has no tick.
  if (!is_periodic(job) || job.attempt > 0 || job.scheduled_at <= 0) return false;
  // A released attempt is not counted, but has started the occurrence.
  if (job.started_at >= job.scheduled_at) return false;
  try {
    const auto schedule = Schedule::of_json(job.schedule);
    if (waits_for_schedule(job) && schedule.next_after(job.scheduled_at - 1) != job.scheduled_at) {
      const bool missed = schedule.next_after(std::max(job.added_at, job.finished_at)) <= now;
      return !missed || schedule.missed() == Missed::skip;
    }
    return schedule.missed() == Missed::skip && schedule.next_after(job.scheduled_at) <= now;
  } catch (const Error&) {
    // If a server that knows the schedule has set the time, the occurrence runs.
    return waits_for_schedule(job);
  }
}

}  // namespace divan::jobs
