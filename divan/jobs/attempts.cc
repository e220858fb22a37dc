#include "divan/jobs/attempts.h"

#include "divan/base/bytes.h"
#include "divan/jobs/rows.h"

namespace divan::jobs {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr std::int64_t kMaxBackoffDoublings = 40;

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

Duration backoff(Queue& queue, const TypeSettings& settings, std::int64_t failures) {
  const double doubled = std::ldexp(static_cast<double>(settings.backoff_min.count()),
                                    static_cast<int>(std::min(failures - 1, kMaxBackoffDoublings)));
  const auto pause =
      static_cast<std::int64_t>(std::min(doubled, static_cast<double>(settings.backoff_max.count())));
  // Up to a quarter off, so that what failed together does not come back together.
  return Duration(pause -
                  static_cast<std::int64_t>(queue.rng().below(static_cast<std::uint64_t>(pause / 4) + 1)));
}

}  // namespace

void take_back(kv::Transaction& tx, Job& job, std::int64_t now) {
  const bool resubmitted = job.resubmit;
  const bool cancelled = job.cancel && !resubmitted;
  transition(tx, job, [&](Job& changed) {
    if (resubmitted) take_next_data(tx, changed);
    if (cancelled) {
      end(changed, State::cancelled, now);
    } else {
      make_pending(changed, resubmitted ? changed.resubmit_at : 0, now);
    }
  });
}

Accepted accept(Queue& queue, kv::Transaction& tx, std::span<const std::string> types,
                const AcceptOptions& options) {
  std::optional<workers::WorkerRef> worker;
  if (options.worker) {
    worker = queue.registry().find(tx, options.worker->role, options.worker->id);
    const auto& incarnation = options.worker->incarnation;
    if (!worker || (!incarnation.empty() && worker->incarnation != incarnation)) {
      throw not_found("The worker is not registered.");
    }
  }
  Accepted accepted;
  const std::int64_t now = queue.clock().wall_ms();
  const std::size_t limit = std::min(options.limit, kMaxAcceptLimit);
  for (const auto& type : types) {
    const auto settings = queue.find_type(tx, type);
    if (!settings || settings->paused) continue;
    const std::size_t free = free_places(tx, type, *settings);
    if (free == 0) {
      accepted.full.insert(type);
      continue;
    }
    auto due = scan_due(tx, type, std::min(free, limit - accepted.jobs.size()),
                        options.max_scheduled_at.value_or(now));
    if (settings->max_running && !due.ids.empty()) take_turn(tx, type);
    if (due.next_due_at) {
      accepted.next_due_at = std::min(accepted.next_due_at.value_or(*due.next_due_at), *due.next_due_at);
    }
    for (const auto& id : due.ids) {
      auto job = read_job(tx, type, id);
      if (!job || job->state != State::pending) throw internal_error("A queued job is not pending.");
      transition(tx, *job, [&](Job& changed) {
        changed.state = State::running;
        changed.lock = queue.rng().uuid();
        // The version that this transaction reads is above that of the commit which ended the attempt before.
        changed.epoch = tx.read_version();
        changed.attempt += 1;
        changed.started_at = now;
        changed.worker_role = worker ? worker->role : std::string();
        changed.worker_id = worker ? worker->id : std::string();
      });
      std::string data = read_data(tx, *job);
      accepted.jobs.push_back({*std::move(job), std::move(data)});
    }
    if (accepted.jobs.size() >= limit) break;
  }
  return accepted;
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
    if (changed.resubmit) {
      take_next_data(tx, changed);
      make_pending(changed, changed.resubmit_at, now);
    } else {
      end(changed, changed.cancel ? State::cancelled : State::finished, now);
    }
  });
}

void fail(Queue& queue, kv::Transaction& tx, const Attempt& attempt, std::string_view error) {
  Job job = owned(tx, attempt);
  const TypeSettings settings = queue.type(tx, job.type);
  const std::int64_t now = queue.clock().wall_ms();
  const bool again = job.resubmit;
  transition(tx, job, [&](Job& changed) {
    if (again) take_next_data(tx, changed);
    changed.failures += 1;
    changed.last_error =
        is_utf8(error) ? std::string(utf8_prefix(error, kMaxErrorBytes)) : "(an error that is not UTF-8)";
    if (changed.cancel && !again) {
      end(changed, State::cancelled, now);
    } else if (changed.failures >= settings.max_attempts && !again) {
      end(changed, State::failed, now);
    } else {
      const auto pause = duration_cast<milliseconds>(backoff(queue, settings, changed.failures)).count();
      make_pending(changed, std::max(now + pause, changed.resubmit_at), now);
    }
  });
}

void release(Queue& queue, kv::Transaction& tx, const Attempt& attempt) {
  Job job = owned(tx, attempt);
  take_back(tx, job, queue.clock().wall_ms());
}

}  // namespace divan::jobs
