#include "divan/jobs/queue.h"

#include <fmt/core.h>

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/jobs/history.h"
#include "divan/jobs/periodic.h"
#include "divan/jobs/rows.h"
#include "divan/jobs/worker_jobs.h"

namespace divan::jobs {
namespace {

Job existing(kv::Transaction& tx, std::string_view type, std::string_view id) {
  auto job = read_job(tx, type, id);
  if (!job) throw not_found("No such job.");
  return *std::move(job);
}

}  // namespace

// The requested values of a new or an existing job.
struct Queue::Wanted {
  std::optional<std::string_view> data;  // nullopt: keep the data
  // nullopt: keep the time, or at once for a new job; with `by_schedule`, the next tick.
  std::optional<std::int64_t> scheduled_at;
  std::int64_t priority = 0;
  std::string schedule;
  std::string limits{};
  bool by_schedule = false;  // a schedule is given instead of a time

  bool keeps_schedule(const Job& job) const { return by_schedule && job.schedule == schedule; }
  bool is_like(const Job& job) const {
    return job.priority == priority && job.schedule == schedule && job.limits == limits;
  }
  bool keeps_time(const Job& pending, std::int64_t now) const {
    if (by_schedule) return keeps_schedule(pending);
    // The time of a job that is not periodic any more was a tick.
    if (!scheduled_at) return pending.schedule == schedule;
    // For example, a job that waits after a failure has another due time than its `scheduled_at`.
    return *scheduled_at == pending.scheduled_at &&
           (pending.due_at <= now || pending.due_at == pending.scheduled_at);
  }
};

namespace {

// Reschedules a pending job (0: at once). The job never moves behind jobs that were due after it: a time in
// the past only moves it forward.
void reschedule(Job& job, std::int64_t scheduled_at, std::int64_t now) {
  const std::int64_t due_at = job.due_at;
  make_pending(job, scheduled_at, now);
  if (job.due_at <= now) job.due_at = std::min(job.due_at, due_at);
}

}  // namespace

Queue::Queue(workers::Registry& registry, const Clock& clock, Rng& rng) : QueueCore(registry, clock, rng) {
  registry.on_removal([this](kv::Transaction& tx, std::string_view role, std::string_view id) {
    worker_ended(*this, tx, role, id);
  });
}

void Queue::set_type(kv::Transaction& tx, std::string_view type, const TypeSettings& settings) {
  check_name("type", type);
  const auto before = find_type(tx, type);
  if (before == settings) return;
  tx.set(type_key(type), settings_json(settings));
  tx.add(types_key(), 1);
  // Wake acceptors, which read the settings.
  tx.add(wake_key(type), 1);
  if (settings.schedule != (before ? before->schedule : "")) set_schedule(tx, type, settings.schedule);
}

void Queue::set_schedule(kv::Transaction& tx, std::string_view type, const std::string& schedule) {
  if (!schedule.empty()) {
    const std::int64_t tick = Schedule::of_json(schedule).next_after(clock().wall_ms());
    put(tx, type, kPeriodicId,
        {.data = "{}", .scheduled_at = tick, .schedule = schedule, .by_schedule = true});
  } else if (const auto job = read_job(tx, type, kPeriodicId)) {
    unlink(tx, *job);
    job_metrics().removed(tx, *job, clock().wall_ms());
  }
}

void Queue::remove_type(kv::Transaction& tx, std::string_view type, bool force) {
  if (own_types_.contains(type)) {
    throw Error(403, "forbidden",
                fmt::format("The job type `{}` belongs to the server and cannot be removed. With "
                            "`{{\"paused\": true}}` as its settings, its jobs are not run.",
                            type));
  }
  if (!tx.get(type_key(type))) throw no_such_job_type(type);
  const auto jobs = JobKey("job").string(type).range();
  if (!force && !tx.get_range(jobs, {.limit = 1}).rows.empty()) {
    throw conflict("The job type has jobs; use ?force=true to remove them, too.");
  }
  // Conflict with accepts and adds of its jobs: these would leave an entry behind, by which a later job of
  // the same name could be reclaimed from a live worker.
  tx.add_read_conflict(jobs);
  for_each_worker_job(*this, tx, type, [&](const WorkerJobEntry& entry, const std::string&) {
    remove_entry(tx, entry.key, entry.in_batch);
  });
  for (const std::string_view kind :
       {"job", "data", "next", "result", "hist", "pend", "act", "deadline", "end", "fin", "cnt"}) {
    tx.clear_range(JobKey(kind).string(type).range());
  }
  tx.clear(type_key(type));
  tx.add(types_key(), 1);
  // Wake acceptors of its jobs, which fail now.
  tx.add(wake_key(type), 1);
}

Queue::Added Queue::add(kv::Transaction& tx, std::string_view type, std::optional<std::string_view> id,
                        std::string_view data, const AddOptions& options) {
  if (id) prefetch(tx, type, std::span(&*id, 1));
  check_declared(tx, type);
  return add_one(tx, type, id, data, options);
}

std::vector<Queue::Added> Queue::add_all(kv::Transaction& tx, std::string_view type,
                                         std::span<const NewJob> jobs) {
  if (tx.is_remote()) {
    std::vector<std::string_view> ids;
    for (const auto& job : jobs) {
      if (job.id) ids.push_back(*job.id);
    }
    prefetch(tx, type, ids);
  }
  check_declared(tx, type);
  std::vector<Added> added;
  added.reserve(jobs.size());
  for (const auto& job : jobs) {
    // The commit would refuse the transaction anyway, but only after the time that all other jobs take.
    if (tx.approximate_size() > kv::kMaxTransactionBytes)
      throw kv::Error(kv::ErrorCode::transaction_too_large);
    added.push_back(add_one(tx, type, job.id, job.data, job.options));
  }
  return added;
}

void Queue::check_declared(kv::Transaction& tx, std::string_view type) {
  if (tx.get(type_key(type))) return;
  const auto own = own_types_.find(type);
  if (own == own_types_.end()) throw no_such_job_type(type);
  set_type(tx, type, own->second);
}

Queue::Added Queue::add_one(kv::Transaction& tx, std::string_view type, std::optional<std::string_view> id,
                            std::string_view data, const AddOptions& options) {
  if (id) check_name("id", *id);
  Wanted wanted{.data = data,
                .scheduled_at = options.scheduled_at,
                .priority = options.priority,
                .schedule = {},
                .limits = options.limits};
  if (options.schedule) {
    if (options.scheduled_at.value_or(0) != 0)
      throw bad_request("A job with a `schedule` must not have a `scheduled_at`.");
    wanted.scheduled_at = options.schedule->next_after(clock().wall_ms());
    wanted.schedule = options.schedule->json();
    wanted.by_schedule = true;
  }
  return put(tx, type, id, wanted);
}

Queue::Added Queue::put(kv::Transaction& tx, std::string_view type, std::optional<std::string_view> id,
                        const Wanted& wanted) {
  const std::int64_t at = wanted.scheduled_at.value_or(0);
  if (at < 0) {
    throw bad_request(fmt::format(
        "`scheduled_at` is {}; expected milliseconds since 1970, or 0 for a job that runs at once.", at));
  }
  const std::int64_t now = clock().wall_ms();
  auto present = id ? read_job(tx, type, *id) : std::nullopt;
  if (!present) {
    Job job;
    job.type = type;
    job.id = id ? std::string(*id) : rng().uuid_at(now);
    job.priority = wanted.priority;
    job.schedule = wanted.schedule;
    job.limits = wanted.limits;
    job.added_at = now;
    make_pending(job, at, now);
    DIVAN_CHECK(wanted.data, "a new job has no data");
    write_data(tx, job, *wanted.data);
    link(tx, job);
    job_metrics().changed(tx, job, now);
    return {job.id, true};
  }

  Job& job = *present;
  if (job.state == State::running) return put_running(tx, job, wanted);
  const bool ended = job.state != State::pending;
  const bool keeps_time = !ended && wanted.keeps_time(job, now);
  const bool keeps_data = !wanted.data || (!job.resubmit && read_data(tx, job) == *wanted.data);
  if (keeps_time && keeps_data && wanted.is_like(job)) return {job.id, false};
  transition(tx, job, [&](Job& changed) {
    if (wanted.data) {
      write_data(tx, changed, *wanted.data);
      drop_next_run(tx, changed);
    }
    if (ended) {
      record_last_attempt(tx, changed);
      write_result(tx, changed, std::nullopt);
      changed.added_at = now;
      changed.attempt = changed.failures = changed.lost = changed.started_at = changed.finished_at = 0;
    }
    changed.priority = wanted.priority;
    changed.schedule = wanted.schedule;
    changed.limits = wanted.limits;
    if (ended) {
      make_pending(changed, at, now);
    } else if (!keeps_time) {
      reschedule(changed, at, now);
    }
  });
  job_metrics().changed(tx, job, now);
  return {job.id, false};
}

// Changes the next run of a running job; the current run is not affected.
Queue::Added Queue::put_running(kv::Transaction& tx, Job& job, const Wanted& wanted) {
  // Without a time the next run keeps its time.
  const bool has_time = job.resubmit && job.resubmit_at != kNextTick;
  const std::int64_t at =
      wanted.by_schedule ? kNextTick : wanted.scheduled_at.value_or(has_time ? job.resubmit_at : 0);
  // A cancelled job has no next occurrence unless it is resubmitted.
  const bool has_next = job.resubmit || !job.cancel;
  const bool keeps_time = (has_next && wanted.keeps_schedule(job)) || (job.resubmit && job.resubmit_at == at);
  const DataSlot slot = job.resubmit ? DataSlot::next : DataSlot::current;
  const bool known = !job.resubmit || job.next_chunks != kSameData;
  const bool keeps_data = !wanted.data || (known && read_data(tx, job, slot) == *wanted.data);
  if (keeps_time && keeps_data && wanted.is_like(job)) return {job.id, false};
  transition(tx, job, [&](Job& changed) {
    if (!keeps_data || !changed.resubmit) write_next_data(tx, changed, wanted.data);
    if (!changed.resubmit || !keeps_time) changed.resubmit_at = at;
    changed.resubmit = true;
    changed.priority = wanted.priority;
    changed.schedule = wanted.schedule;
    changed.limits = wanted.limits;
  });
  return {job.id, false};
}

void Queue::removed(kv::Transaction& tx, const Job& job) {
  job_metrics().removed(tx, job, clock().wall_ms());
  if (job.id != kPeriodicId) return;
  auto settings = type(tx, job.type);
  settings.schedule.clear();
  tx.set(type_key(job.type), settings_json(settings));
  tx.add(types_key(), 1);
}

void Queue::remove(kv::Transaction& tx, std::string_view type, std::string_view id) {
  const Job job = existing(tx, type, id);
  unlink(tx, job);
  removed(tx, job);
}

void Queue::cancel(kv::Transaction& tx, std::string_view type, std::string_view id) {
  Job job = existing(tx, type, id);
  if (job.state == State::pending) {
    const std::int64_t now = clock().wall_ms();
    transition(tx, job, [&](Job& changed) {
      drop_next_run(tx, changed);
      changed.state = State::cancelled;
      changed.finished_at = now;
    });
    job_metrics().changed(tx, job, now);
  } else if (job.state == State::running && (!job.cancel || job.resubmit)) {
    transition(tx, job, [&](Job& changed) {
      drop_next_run(tx, changed);
      changed.cancel = true;
    });
  }
}

void Queue::resubmit(kv::Transaction& tx, std::string_view type, std::string_view id,
                     std::int64_t scheduled_at, std::optional<std::string_view> data) {
  const Job job = existing(tx, type, id);
  put(tx, type, id,
      {.data = data,
       .scheduled_at = scheduled_at,
       .priority = job.priority,
       .schedule = job.schedule,
       .limits = job.limits});
}

}  // namespace divan::jobs
