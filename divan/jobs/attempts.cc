#include "divan/jobs/attempts.h"

#include <fmt/core.h>

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/jobs/halts.h"
#include "divan/jobs/history.h"
#include "divan/jobs/periodic.h"
#include "divan/jobs/rows.h"

namespace divan::jobs {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr std::int64_t kMaxBackoffDoublings = 40;

Job owned(kv::Transaction& tx, const Attempt& attempt) {
  auto job = read_job(tx, attempt.type, attempt.id);
  if (!job || job->state != State::running || job->lock != attempt.lock || attempt.lock.empty())
    throw LockLost();
  return *std::move(job);
}

void end(Job& job, State state, std::int64_t now) {
  DIVAN_CHECK(has_ended(state), "a job ends and is {}", state_name(state));
  job.state = state;
  job.lock.clear();
  job.finished_at = now;
  job.cancel = false;
  job.deadline = 0;
}

Duration backoff(QueueCore& queue, const TypeSettings& settings, std::int64_t failures) {
  DIVAN_CHECK(failures > 0, "a backoff after {} failures", failures);
  const double doubled = std::ldexp(static_cast<double>(settings.backoff_min.count()),
                                    static_cast<int>(std::min(failures - 1, kMaxBackoffDoublings)));
  const auto pause =
      static_cast<std::int64_t>(std::min(doubled, static_cast<double>(settings.backoff_max.count())));
  DIVAN_CHECK(pause >= 0, "a backoff of {} ns", pause);
  // Jitter of up to a quarter, so that jobs that failed together are not retried together.
  return Duration(pause -
                  static_cast<std::int64_t>(queue.rng().below(static_cast<std::uint64_t>(pause / 4) + 1)));
}

// Continues the run at another time. A periodic job keeps its tick.
void postpone(Job& job, std::int64_t due_at, std::int64_t now) {
  const std::int64_t tick = job.scheduled_at;
  make_pending(job, due_at, now);
  if (is_periodic(job)) job.scheduled_at = tick;
}

// Ends the run. A resubmitted job runs again, a periodic one runs at its next tick.
void end_run(kv::Transaction& tx, Job& job, State state, std::int64_t now) {
  const bool again = job.resubmit;
  const std::int64_t at = again ? take_next_run(tx, job) : kNextTick;
  if (again && at != kNextTick) {
    make_pending(job, at, now);
    job.failures = job.lost = 0;
    // Each occurrence counts its own attempts.
    if (is_periodic(job)) {
      job.attempt = 0;
      job.finished_at = now;
    }
  } else if (is_periodic(job) && (again || !job.cancel)) {
    begin_next_occurrence(job, now);
    job.finished_at = now;
  } else {
    end(job, job.cancel ? State::cancelled : state, now);
  }
}

// The most attempts at a run of the job that may be lost; nullopt: any number.
std::optional<std::int64_t> max_lost(QueueCore& queue, kv::Transaction& tx, const Job& job) {
  return with_limits(queue.find_type(tx, job.type).value_or(TypeSettings()), job.limits).max_lost;
}

}  // namespace

void reclaim(QueueCore& queue, kv::Transaction& tx, Job& job, Outcome why, std::optional<Duration> delay) {
  const std::int64_t now = queue.clock().wall_ms();
  DIVAN_CHECK(job.state == State::running, "a job that is {} is reclaimed", state_name(job.state));
  const auto most_lost = why == Outcome::lost ? max_lost(queue, tx, job) : std::nullopt;
  const Job before = job;
  transition(tx, job, [&](Job& changed) {
    if (why == Outcome::lost) ++changed.lost;
    if (changed.cancel) {
      end_run(tx, changed, State::cancelled, now);
    } else if (most_lost && changed.lost >= *most_lost) {
      changed.last_error =
          fmt::format("{} attempts were lost (`max_lost` is {}): the job may crash its workers.",
                      changed.lost, *most_lost);
      end_run(tx, changed, State::failed, now);
    } else {
      delay ? postpone(changed, now + duration_cast<milliseconds>(*delay).count(), now)
            : return_to_queue(changed);
      // The job may have crashed its worker: put it behind the jobs that are due.
      if (why == Outcome::lost) changed.due_at = std::max(changed.due_at, now);
      // A released attempt does not count: the next one has the same number.
      if (why == Outcome::released) changed.attempt = std::max<std::int64_t>(changed.attempt - 1, 0);
    }
    if (changed.state == State::pending) record_attempt(tx, before, changed, why, now);
  });
  DIVAN_CHECK(job.state != State::running, "an attempt was reclaimed and its job still runs");
  queue.job_metrics().ended(tx, before, job, why, now);
}

namespace {

void check_progress(std::optional<std::string_view> progress) {
  if (progress && (progress->size() > kMaxProgressBytes || !is_utf8(*progress)))
    throw bad_request("Invalid progress of a job; expected at most 10,000 bytes of JSON.");
}

}  // namespace

UpdateResult update(QueueCore&, kv::Transaction& tx, const Attempt& attempt,
                    std::optional<std::string_view> data, std::optional<std::string_view> progress) {
  Job job = owned(tx, attempt);
  check_progress(progress);
  const bool changed_progress = progress && *progress != job.progress;
  // A worker job is kept alive by the worker's heartbeat: without progress or data nothing is written.
  if (job.activity || changed_progress || data) {
    transition(tx, job, [&](Job& changed) {
      changed.activity.reset();
      if (data) write_data(tx, changed, *data);
      if (progress) changed.progress = *progress;
    });
  }
  return {job.resubmit, job.cancel};
}

void detach(QueueCore&, kv::Transaction& tx, const Attempt& attempt,
            std::optional<std::string_view> progress) {
  Job job = owned(tx, attempt);
  check_progress(progress);
  transition(tx, job, [&](Job& changed) {
    changed.worker_role.clear();
    changed.worker_id.clear();
    changed.batch = 0;
    changed.activity.reset();
    if (progress) changed.progress = *progress;
  });
}

void finish(QueueCore& queue, kv::Transaction& tx, const Attempt& attempt,
            std::optional<std::string_view> data, std::optional<std::string_view> progress,
            std::optional<std::string_view> result) {
  Job job = owned(tx, attempt);
  const std::int64_t now = queue.clock().wall_ms();
  if (data) check_data(*data);
  if (result) check_data(*result);
  check_progress(progress);
  const Job before = job;
  transition(tx, job, [&](Job& changed) {
    if (progress) changed.progress = *progress;
    changed.failures = changed.lost = 0;
    changed.last_error.clear();
    write_result(tx, changed, result);
    // They are not needed if the next run has data of its own.
    if (data && (!changed.resubmit || changed.next_chunks == kSameData)) write_data(tx, changed, *data);
    end_run(tx, changed, State::finished, now);
    if (changed.state == State::pending) record_attempt(tx, before, changed, Outcome::finished, now);
  });
  DIVAN_CHECK(job.state != State::running, "an attempt has finished and its job still runs");
  queue.job_metrics().ended(tx, before, job, Outcome::finished, now);
}

namespace {

void fail_job(QueueCore& queue, kv::Transaction& tx, Job& job, std::string_view error,
              const FailOptions& options) {
  const TypeSettings settings = with_limits(queue.type(tx, job.type), job.limits);
  const std::int64_t now = queue.clock().wall_ms();
  const Job before = job;
  transition(tx, job, [&](Job& changed) {
    changed.failures += 1;
    changed.last_error =
        is_utf8(error) ? std::string(utf8_prefix(error, kMaxErrorBytes)) : "(the error is not UTF-8)";
    if (changed.cancel || !options.retry || changed.failures >= settings.max_attempts) {
      end_run(tx, changed, State::failed, now);
    } else {
      const Duration pause = options.delay ? *options.delay : backoff(queue, settings, changed.failures);
      postpone(changed, now + duration_cast<milliseconds>(pause).count(), now);
    }
    if (changed.state == State::pending)
      record_attempt(tx, before, changed, Outcome::failed, now, changed.last_error);
  });
  DIVAN_CHECK(job.state != State::running, "an attempt has failed and its job still runs");
  queue.job_metrics().ended(tx, before, job, Outcome::failed, now);
}

}  // namespace

void fail(QueueCore& queue, kv::Transaction& tx, const Attempt& attempt, std::string_view error,
          const FailOptions& options) {
  Job job = owned(tx, attempt);
  fail_job(queue, tx, job, error, options);
}

void end_overdue(QueueCore& queue, kv::Transaction& tx, Job& job) {
  const std::string error =
      fmt::format("The attempt ran longer than its `max_runtime` of {} ms.", job.deadline - job.started_at);
  add_halt(queue, tx, job, error);
  fail_job(queue, tx, job, error, {});
}

void check_owned(kv::Transaction& tx, const Attempt& attempt) { owned(tx, attempt); }

void release(QueueCore& queue, kv::Transaction& tx, const Attempt& attempt, std::optional<Duration> delay) {
  Job job = owned(tx, attempt);
  reclaim(queue, tx, job, Outcome::released, delay);
}

void release_without_lock(QueueCore& queue, kv::Transaction& tx, std::string_view type, std::string_view id,
                          std::int64_t epoch, std::optional<Duration> delay) {
  auto job = read_job(tx, type, id);
  if (!job || job->state != State::running || job->epoch != epoch)
    throw Error(409, "conflict", fmt::format("The attempt with the epoch {} is not running.", epoch));
  add_halt(queue, tx, *job, "The attempt was ended by a request, and the job was returned to the queue.");
  reclaim(queue, tx, *job, Outcome::released, delay);
}

}  // namespace divan::jobs
