#include "divan/jobs/attempts.h"

#include "divan/base/bytes.h"
#include "divan/jobs/periodic.h"
#include "divan/jobs/rows.h"

namespace divan::jobs {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr std::int64_t kMaxBackoffDoublings = 40;
// Missed occurrences that one accept() moves to their next tick.
constexpr std::size_t kMaxSkipped = 100;

// The keys of the pending jobs that are due, in the order in which they run; takes those of the first
// priorities first, skipping what is not due yet in each.
struct DueScan {
  std::vector<std::string> ids;
  std::optional<std::int64_t> next_due_at;
};

DueScan scan_due(kv::Transaction& tx, std::string_view type, std::size_t limit, std::int64_t due_until) {
  DueScan found;
  const JobKey prefix = JobKey("pend").string(type).integer(kShard);
  kv::KeyRange range = prefix.range();
  while (found.ids.size() < limit) {
    std::optional<std::int64_t> skip_priority;
    // Acceptors would fight over the head of the queue: what they look at does not conflict, what they take
    // does.
    tx.scan(range, {.isolation = kv::Isolation::snapshot}, [&](std::string_view key, std::string_view) {
      kv::tuple::Reader reader(key.substr(prefix.key().size()));
      const auto priority = reader.take_int();
      const auto due_at = reader.take_int();
      auto id = reader.take_string();
      if (!priority || !due_at || !id)
        throw internal_error("A row of the job queue in the store is damaged.");
      if (*due_at > due_until) {
        found.next_due_at = std::min(found.next_due_at.value_or(*due_at), *due_at);
        skip_priority = *priority;
        return false;
      }
      found.ids.push_back(*std::move(id));
      return found.ids.size() < limit;
    });
    if (!skip_priority) break;
    range.begin = JobKey(prefix).integer(*skip_priority).range().end;
  }
  return found;
}

// How many more jobs of the type may run: SIZE_MAX without a limit.
//
// The count of running jobs grows by accept() alone. Whoever accepts under a limit takes a turn (turn_range),
// so that of two who have read the same count one fails; what makes the count smaller need not disturb them,
// and so it is read as a snapshot. Acceptors that know of no limit take no turn: they have read the settings,
// and cannot commit after these have changed.
std::size_t free_places(kv::Transaction& tx, std::string_view type, const TypeSettings& settings) {
  if (!settings.max_running) return SIZE_MAX;
  const std::int64_t running =
      kv::decode_counter(tx.get(count_key(type, State::running), kv::Isolation::snapshot));
  return running >= *settings.max_running ? 0 : static_cast<std::size_t>(*settings.max_running - running);
}

void take_turn(kv::Transaction& tx, std::string_view type) {
  tx.add_read_conflict(turn_range(type));
  tx.add_write_conflict(turn_range(type));
}

Job owned(kv::Transaction& tx, const Attempt& attempt) {
  auto job = read_job(tx, attempt.type, attempt.id);
  if (!job || job->state != State::running || job->lock != attempt.lock || attempt.lock.empty()) throw halt();
  return *std::move(job);
}

void end(Job& job, State state, std::int64_t now) {
  job.state = state;
  job.lock.clear();
  job.worker_role.clear();
  job.worker_id.clear();
  job.finished_at = now;
  job.cancel = false;
}

// Pending because it was asked for again: of a periodic job, an occurrence of its own.
void run_again(Job& job, std::int64_t scheduled_at, std::int64_t now) {
  make_pending(job, scheduled_at, now);
  if (is_periodic(job)) job.attempt = job.failures = 0;
}

Duration backoff(Queue& queue, const TypeSettings& settings, std::int64_t failures) {
  const double doubled = std::ldexp(static_cast<double>(settings.backoff_min.count()),
                                    static_cast<int>(std::min(failures - 1, kMaxBackoffDoublings)));
  const auto pause =
      static_cast<std::int64_t>(std::min(doubled, static_cast<double>(settings.backoff_max.count())));
  // Up to a quarter off, so that what failed together does not come back together.
  return Duration(pause -
                  static_cast<std::int64_t>(queue.rng().below(static_cast<std::uint64_t>(pause / 4) + 1)));
}

// The run has ended. A job that was asked for again runs again, a periodic one does at its next tick.
void end_run(kv::Transaction& tx, Job& job, State state, std::int64_t now) {
  if (job.resubmit) {
    take_next_data(tx, job);
    run_again(job, job.resubmit_at, now);
  } else if (is_periodic(job) && !job.cancel) {
    begin_next_occurrence(job, now);
    job.finished_at = now;
  } else {
    end(job, job.cancel ? State::cancelled : state, now);
  }
}

}  // namespace

void take_back(kv::Transaction& tx, Job& job, std::int64_t now) {
  transition(tx, job, [&](Job& changed) {
    if (changed.resubmit || changed.cancel) {
      end_run(tx, changed, State::cancelled, now);
    } else {
      make_pending(changed, is_periodic(changed) ? changed.scheduled_at : 0, now);
    }
  });
}

namespace {

// One call of accept().
struct Accepting {
  Queue& queue;
  kv::Transaction& tx;
  std::int64_t now;
  std::int64_t due_until;
  std::optional<workers::WorkerRef> worker;
  Accepted accepted = {};
};

void begin(Accepting& call, Job job) {
  transition(call.tx, job, [&](Job& changed) {
    changed.state = State::running;
    changed.lock = call.queue.rng().uuid();
    // The version that this transaction reads is above that of the commit which ended the attempt before.
    changed.epoch = call.tx.read_version();
    changed.attempt += 1;
    changed.started_at = call.now;
    changed.worker_role = call.worker ? call.worker->role : std::string();
    changed.worker_id = call.worker ? call.worker->id : std::string();
  });
  std::string data = read_data(call.tx, job);
  call.accepted.jobs.push_back({std::move(job), std::move(data)});
}

void accept_of_type(Accepting& call, const std::string& type, std::size_t most) {
  auto& next_due_at = call.accepted.next_due_at;
  // Missed occurrences that are skipped make room for others.
  std::size_t skipped = 0;
  for (bool again = true; again;) {
    again = false;
    const auto due = scan_due(call.tx, type, most, call.due_until);
    if (due.next_due_at) next_due_at = std::min(next_due_at.value_or(*due.next_due_at), *due.next_due_at);
    for (const auto& id : due.ids) {
      auto job = read_job(call.tx, type, id);
      if (!job || job->state != State::pending) throw internal_error("A queued job is not pending.");
      if (is_to_be_skipped(*job, call.now)) {
        transition(call.tx, *job, [&](Job& changed) { begin_next_occurrence(changed, call.now); });
        ++skipped;
        again = true;
      } else {
        begin(call, *std::move(job));
        --most;
      }
    }
    if (again && skipped >= kMaxSkipped) {
      // The rest of what is due is for the next call.
      next_due_at = call.now;
      return;
    }
  }
}

}  // namespace

Accepted accept(Queue& queue, kv::Transaction& tx, std::span<const std::string> types,
                const AcceptOptions& options) {
  const std::int64_t now = queue.clock().wall_ms();
  Accepting call{.queue = queue,
                 .tx = tx,
                 .now = now,
                 .due_until = options.max_scheduled_at.value_or(now),
                 .worker = std::nullopt};
  if (options.worker) {
    call.worker = queue.registry().find(tx, options.worker->role, options.worker->id);
    const auto& incarnation = options.worker->incarnation;
    if (!call.worker || (!incarnation.empty() && call.worker->incarnation != incarnation)) {
      throw not_found("The worker is not registered.");
    }
  }
  const std::size_t limit = std::min(options.limit, kMaxAcceptLimit);
  for (const auto& type : types) {
    const auto settings = queue.find_type(tx, type);
    if (!settings || settings->paused) continue;
    const std::size_t free = free_places(tx, type, *settings);
    if (free == 0) {
      call.accepted.full.insert(type);
      continue;
    }
    const std::size_t before = call.accepted.jobs.size();
    accept_of_type(call, type, std::min(free, limit - before));
    if (settings->max_running && call.accepted.jobs.size() > before) take_turn(tx, type);
    if (call.accepted.jobs.size() >= limit) break;
  }
  return std::move(call.accepted);
}

UpdateAnswer update(Queue&, kv::Transaction& tx, const Attempt& attempt, std::optional<std::string_view> data,
                    std::optional<std::string_view> progress) {
  Job job = owned(tx, attempt);
  if (progress && (progress->size() > kMaxProgressBytes || !is_utf8(*progress)))
    throw bad_request("A job's progress is at most 10,000 bytes of JSON.");
  const bool changed_progress = progress && *progress != job.progress;
  // A job on a worker lives by the worker's heartbeat: without news there is nothing to write.
  if (job.activity || changed_progress || data) {
    transition(tx, job, [&](Job& changed) {
      if (data) write_data(tx, changed, *data);
      if (progress) changed.progress = *progress;
    });
  }
  return {job.resubmit, job.cancel};
}

void finish(Queue& queue, kv::Transaction& tx, const Attempt& attempt, std::optional<std::string_view> data) {
  Job job = owned(tx, attempt);
  const std::int64_t now = queue.clock().wall_ms();
  if (data) check_data(*data);
  transition(tx, job, [&](Job& changed) {
    changed.failures = 0;
    changed.last_error.clear();
    if (data && !changed.resubmit) write_data(tx, changed, *data);
    end_run(tx, changed, State::finished, now);
  });
}

void fail(Queue& queue, kv::Transaction& tx, const Attempt& attempt, std::string_view error) {
  Job job = owned(tx, attempt);
  const TypeSettings settings = queue.type(tx, job.type);
  const std::int64_t now = queue.clock().wall_ms();
  transition(tx, job, [&](Job& changed) {
    changed.failures += 1;
    changed.last_error =
        is_utf8(error) ? std::string(utf8_prefix(error, kMaxErrorBytes)) : "(an error that is not UTF-8)";
    if (!changed.resubmit && (changed.cancel || changed.failures >= settings.max_attempts)) {
      end_run(tx, changed, State::failed, now);
      return;
    }
    const std::int64_t retry_at =
        now + duration_cast<milliseconds>(backoff(queue, settings, changed.failures)).count();
    if (changed.resubmit) {
      take_next_data(tx, changed);
      run_again(changed, std::max(retry_at, changed.resubmit_at), now);
    } else {
      const std::int64_t tick = changed.scheduled_at;
      make_pending(changed, retry_at, now);
      if (is_periodic(changed)) changed.scheduled_at = tick;
    }
  });
}

void release(Queue& queue, kv::Transaction& tx, const Attempt& attempt) {
  Job job = owned(tx, attempt);
  take_back(tx, job, queue.clock().wall_ms());
}

}  // namespace divan::jobs
