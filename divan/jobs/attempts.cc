#include "divan/jobs/attempts.h"

#include <numeric>

#include "divan/base/bytes.h"
#include "divan/jobs/history.h"
#include "divan/jobs/periodic.h"
#include "divan/jobs/rows.h"

namespace divan::jobs {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr std::int64_t kMaxBackoffDoublings = 40;
// Missed occurrences of a type that are moved to their next tick at once.
constexpr std::size_t kMaxSkipped = 100;
// The data of jobs that are accepted together: with the next one, somewhat more.
constexpr std::size_t kMaxAcceptBytes = 8'000'000;

// Priorities without a due job that a look goes over behind due ones, if it can go on there the next time.
constexpr std::size_t kMaxPrioritiesBehind = 100;

// The pending jobs that are due, in the order in which they run.
struct DueScan {
  std::vector<std::string> ids;
  QueueHead head;    // once these do not wait any more
  bool cut = false;  // there may be more behind them
};

// Takes those of the first priorities first, skipping what is not due yet in each, from the given head on.
class DueScanner {
 public:
  DueScanner(kv::Transaction& tx, std::string_view type, std::int64_t due_until, std::size_t most_behind)
      : tx_(tx), prefix_(all(type)), due_until_(due_until), most_behind_(most_behind) {}

  // The beginning of the keys of pending jobs.
  static JobKey all(std::string_view type) { return JobKey("pend").string(type).integer(kShard); }

  // Up to `limit`; of the first priority, if that has so many, up to `window`.
  DueScan scan(std::size_t limit, std::size_t window, const QueueHead& head) {
    DueScan found{.ids = {}, .head = head};
    kv::KeyRange range = prefix_.range();
    if (!head.begin.empty()) range.begin = head.begin;
    for (std::size_t behind = 0; found.ids.size() < limit; behind += found.ids.empty() ? 0 : 1) {
      found.cut = behind > most_behind_;
      if (found.cut) break;
      const auto later = scan_some(range, limit, window, found);
      if (!later) {
        found.head.begin = found.ids.size() < limit ? range.end : priority_range(last_priority_).begin;
        break;
      }
      range.begin = found.head.begin = priority_range(*later).end;
    }
    return found;
  }

 private:
  kv::KeyRange priority_range(std::int64_t priority) const {
    return JobKey(prefix_).integer(priority).range();
  }

  // Up to the first job that is not due: answers its priority.
  std::optional<std::int64_t> scan_some(const kv::KeyRange& range, std::size_t limit, std::size_t window,
                                        DueScan& found) {
    std::optional<std::int64_t> later;
    // Acceptors would fight over the head of the queue: what they look at does not conflict, what they take
    // does.
    tx_.scan(range, {.isolation = kv::Isolation::snapshot}, [&](std::string_view key, std::string_view) {
      kv::tuple::Reader reader(key.substr(prefix_.key().size()));
      const auto priority = reader.take_int();
      const auto due_at = reader.take_int();
      auto id = reader.take_string();
      if (!priority || !due_at || !id)
        throw internal_error("A row of the job queue in the store is damaged.");
      if (found.ids.size() >= limit && *priority != last_priority_) return false;
      if (*due_at > due_until_) {
        auto& next = found.head.next_due_at;
        next = std::min(next.value_or(*due_at), *due_at);
        later = *priority;
        return false;
      }
      if (found.ids.empty()) first_priority_ = *priority;
      last_priority_ = *priority;
      found.ids.push_back(*std::move(id));
      return found.ids.size() < (*priority == first_priority_ ? window : limit);
    });
    return later;
  }

  kv::Transaction& tx_;
  const JobKey prefix_;
  const std::int64_t due_until_;
  const std::size_t most_behind_;
  std::int64_t first_priority_ = 0, last_priority_ = 0;  // of jobs that were found
};

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
  const std::int64_t free = *settings.max_running - std::max<std::int64_t>(running, 0);
  return free > 0 ? static_cast<std::size_t>(free) : 0;
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

// The run has ended. A job that was asked for again runs again, a periodic one does at its next tick.
void end_run(kv::Transaction& tx, Job& job, State state, std::int64_t now) {
  const bool again = job.resubmit;
  const std::int64_t at = again ? take_next_run(tx, job) : kNextTick;
  if (again && at != kNextTick) {
    make_pending(job, at, now);
    job.failures = 0;
    // An occurrence of its own.
    if (is_periodic(job)) job.attempt = 0;
  } else if (is_periodic(job) && (again || !job.cancel)) {
    begin_next_occurrence(job, now);
    job.finished_at = now;
  } else {
    end(job, job.cancel ? State::cancelled : state, now);
  }
}

}  // namespace

void take_back(Queue& queue, kv::Transaction& tx, Job& job, Outcome why) {
  const std::int64_t now = queue.clock().wall_ms();
  const Job before = job;
  transition(tx, job, [&](Job& changed) {
    if (changed.cancel) {
      end_run(tx, changed, State::cancelled, now);
    } else {
      put_back(changed);
      // What took its worker with it may do so again: others that are due come first.
      if (why == Outcome::lost) changed.due_at = std::max(changed.due_at, now);
    }
    if (changed.state == State::pending) remember_attempt(tx, before, changed, why, now);
  });
  queue.observer().ended(tx, before, job, why, now);
}

namespace {

workers::WorkerRef registered(Queue& queue, kv::Transaction& tx, const workers::WorkerRef& worker) {
  const auto found = queue.registry().find(tx, worker.role, worker.id);
  if (!found || (!worker.incarnation.empty() && worker.incarnation != found->incarnation))
    throw not_found("The worker is not registered.");
  return *found;
}

// Those who take part in a deal, in their order.
class Takers {
 public:
  Takers(Queue& queue, kv::Transaction& tx, std::span<Taker> takers)
      : queue_(queue), tx_(tx), takers_(takers), limits_(takers.size()), workers_(takers.size()) {
    for (std::size_t i = 0; i < takers.size(); ++i) {
      takers[i].jobs.clear();
      takers[i].error = nullptr;
      limits_[i] = std::min(takers[i].limit, kMaxAcceptLimit);
      if (takers[i].must_exist) find_worker(i);
    }
  }

  /// How many jobs they can take.
  std::size_t free() const { return std::accumulate(limits_.begin(), limits_.end(), std::size_t{0}); }

  /// Who takes the next job, and on which worker; null if nobody does.
  std::pair<Taker*, const workers::WorkerRef*> next() {
    for (; next_ < takers_.size(); ++next_) {
      if (limits_[next_] > 0) find_worker(next_);
      if (limits_[next_] == 0) continue;
      --limits_[next_];
      return {&takers_[next_], workers_[next_] ? &*workers_[next_] : nullptr};
    }
    return {};
  }

 private:
  void find_worker(std::size_t i) {
    if (!takers_[i].worker || workers_[i]) return;
    try {
      workers_[i] = registered(queue_, tx_, *takers_[i].worker);
    } catch (const kv::Error&) { throw; } catch (const Error&) {
      takers_[i].error = std::current_exception();
      limits_[i] = 0;
    }
  }

  Queue& queue_;
  kv::Transaction& tx_;
  const std::span<Taker> takers_;
  std::vector<std::size_t> limits_;
  std::vector<std::optional<workers::WorkerRef>> workers_;
  std::size_t next_ = 0;
};

// The job runs, as an attempt of its own.
void start(Queue& queue, kv::Transaction& tx, Job& job, const workers::WorkerRef* worker, std::int64_t now) {
  transition(tx, job, [&](Job& changed) {
    changed.state = State::running;
    changed.lock = queue.rng().uuid();
    // The version that this transaction reads is above that of the commit which ended the attempt before.
    changed.epoch = tx.read_version();
    changed.attempt += 1;
    changed.started_at = now;
    changed.worker_role = worker ? worker->role : std::string();
    changed.worker_id = worker ? worker->id : std::string();
  });
  queue.observer().started(tx, job, std::max(job.due_at, job.added_at));
}

// One call of deal().
class Deal {
 public:
  Deal(Queue& queue, kv::Transaction& tx, std::optional<std::int64_t> max_scheduled_at,
       std::span<Taker> takers, QueueHeads* heads)
      : queue_(queue),
        tx_(tx),
        takers_(queue, tx, takers),
        heads_(heads),
        now_(queue.clock().wall_ms()),
        due_until_(max_scheduled_at.value_or(now_)) {}

  Found run(std::span<const std::string> types) {
    for (const auto& type : types) {
      if (cut_) break;
      // Where nobody takes any, there is only to say which types there are not.
      if (!is_full()) {
        deal_type(type);
      } else if (jobs_ == 0 && !queue_.find_type(tx_, type)) {
        found_.undeclared.insert(type);
      }
    }
    found_.more = is_full() || cut_;
    return std::move(found_);
  }

 private:
  void expect_jobs(const std::string& type, std::span<const std::string> ids) {
    kv::Expectation reads;
    for (const auto& id : ids) expect_job(reads, type, id);
    tx_.expect(reads);
  }

  bool is_full() const {
    return takers_.free() == 0 || jobs_ >= kMaxAcceptLimit || bytes_ >= kMaxAcceptBytes;
  }

  void deal_type(const std::string& type) {
    const auto settings = queue_.find_type(tx_, type);
    if (!settings) found_.undeclared.insert(type);
    if (!settings || settings->paused) return;
    const std::size_t free = free_places(tx_, type, *settings);
    const std::size_t before = jobs_;
    const QueueHead head = head_of(type);
    // Under a limit nodes go one after the other anyway.
    const std::size_t spread = settings->max_running ? 1 : head.spread;
    DueScanner scanner(tx_, type, due_until_, heads_ ? kMaxPrioritiesBehind : SIZE_MAX);
    // Missed occurrences that are skipped make room for others.
    std::size_t skipped = 0;
    for (bool again = free > 0; again && skipped < kMaxSkipped && !is_full();) {
      const std::size_t skipped_before = skipped;
      const std::size_t wanted = std::min({free - (jobs_ - before), takers_.free(), kMaxAcceptLimit - jobs_});
      auto due = scanner.scan(wanted, std::min(wanted * spread, kMaxAcceptLimit), head);
      const std::size_t slices = std::max(due.ids.size() / wanted, std::size_t{1});
      const bool leaves = choose(due, wanted, slices);
      // Where the past is asked for, no time makes more jobs due.
      if (due.head.next_due_at && due_until_ >= now_) look_again_at(*due.head.next_due_at);
      if (tx_.is_remote()) expect_jobs(type, due.ids);
      std::size_t taken = 0;
      while (taken < due.ids.size() && !is_full() && take(type, due.ids[taken], skipped)) ++taken;
      again = skipped > skipped_before;
      cut_ = due.cut;
      if (heads_ && taken == due.ids.size() && !leaves) (*heads_)[type] = std::move(due.head);
      if (heads_) (*heads_)[type].spread = std::min(spread, slices);
    }
    // What else is due is for the next call.
    if (skipped >= kMaxSkipped) look_again_at(now_);
    if (settings->max_running && jobs_ > before) take_turn(tx_, type);
    if (jobs_ - before == free) found_.full.insert(type);
  }

  // What is known of the type's queue: nothing, if a job has become pending since.
  QueueHead head_of(const std::string& type) {
    if (heads_ == nullptr) return {};
    QueueHead& head = (*heads_)[type];
    auto wakes = tx_.get(wake_key(type), kv::Isolation::snapshot).value_or("");
    const bool holds = head.wakes == wakes && head.next_due_at.value_or(INT64_MAX) > due_until_;
    if (!holds) head = {.wakes = std::move(wakes), .spread = head.spread};
    return head;
  }

  // Leaves one of the slices of which each has as many as are wanted; answers whether there were others.
  bool choose(DueScan& due, std::size_t wanted, std::size_t slices) {
    if (due.ids.size() <= wanted) return false;
    const std::size_t first = slices > 1 ? queue_.rng().below(slices) * wanted : 0;
    due.ids.resize(first + wanted);
    due.ids.erase(due.ids.begin(), due.ids.begin() + static_cast<std::ptrdiff_t>(first));
    return true;
  }

  // False if nobody takes jobs any more.
  bool take(const std::string& type, const std::string& id, std::size_t& skipped) {
    auto job = read_job(tx_, type, id);
    if (!job || job->state != State::pending) throw internal_error("A queued job is not pending.");
    if (is_to_be_skipped(*job, now_)) {
      transition(tx_, *job, [&](Job& changed) { begin_next_occurrence(changed, now_); });
      ++skipped;
      return true;
    }
    const auto [taker, worker] = takers_.next();
    if (taker == nullptr) return false;
    std::string data = read_data(tx_, *job);
    ++jobs_;
    bytes_ += data.size();
    start(queue_, tx_, *job, worker, now_);
    taker->jobs.push_back({*std::move(job), std::move(data)});
    return true;
  }

  void look_again_at(std::int64_t ms) { found_.next_due_at = std::min(found_.next_due_at.value_or(ms), ms); }

  Queue& queue_;
  kv::Transaction& tx_;
  Takers takers_;
  QueueHeads* const heads_;
  const std::int64_t now_;
  const std::int64_t due_until_;
  Found found_;
  std::size_t jobs_ = 0;
  std::size_t bytes_ = 0;
  bool cut_ = false;
};

// Says what a look at short queues reads before it knows of any job.
void expect_deal(kv::Transaction& tx, std::span<const std::string> types, std::span<const Taker> takers,
                 const QueueHeads* heads) {
  kv::Expectation reads;
  std::size_t limit = 1;
  for (const auto& taker : takers) {
    limit += taker.limit;
    if (taker.worker) workers::Registry::expect(reads, taker.worker->role, taker.worker->id);
  }
  for (const auto& type : types) {
    reads.key(type_key(type));
    reads.key(wake_key(type));
    reads.key(count_key(type, State::running));
    std::size_t spread = 1;
    if (heads != nullptr && heads->contains(type)) spread = heads->at(type).spread;
    reads.range(DueScanner::all(type).range(), std::min(limit * spread, kMaxAcceptLimit + 1));
  }
  tx.expect(reads);
}

void check_progress(std::optional<std::string_view> progress) {
  if (progress && (progress->size() > kMaxProgressBytes || !is_utf8(*progress)))
    throw bad_request("A job's progress is at most 10,000 bytes of JSON.");
}

}  // namespace

Found deal(Queue& queue, kv::Transaction& tx, std::span<const std::string> types,
           std::optional<std::int64_t> max_scheduled_at, std::span<Taker> takers, QueueHeads* heads) {
  if (tx.is_remote()) expect_deal(tx, types, takers, heads);
  return Deal(queue, tx, max_scheduled_at, takers, heads).run(types);
}

Accepted accept(Queue& queue, kv::Transaction& tx, std::span<const std::string> types,
                const AcceptOptions& options) {
  Taker taker{.limit = options.limit, .worker = options.worker};
  auto found = deal(queue, tx, types, options.max_scheduled_at, std::span(&taker, 1));
  if (taker.error) std::rethrow_exception(taker.error);
  return {std::move(taker.jobs), found.next_due_at, std::move(found.full)};
}

std::optional<Job> next_due(Queue& queue, kv::Transaction& tx, std::string_view type) {
  const auto due = DueScanner(tx, type, queue.clock().wall_ms(), kMaxPrioritiesBehind).scan(1, 1, {});
  if (due.ids.empty()) return std::nullopt;
  return read_job(tx, type, due.ids.front(), kv::Isolation::snapshot);
}

UpdateAnswer update(Queue&, kv::Transaction& tx, const Attempt& attempt, std::optional<std::string_view> data,
                    std::optional<std::string_view> progress) {
  Job job = owned(tx, attempt);
  check_progress(progress);
  const bool changed_progress = progress && *progress != job.progress;
  // A job on a worker lives by the worker's heartbeat: without news there is nothing to write.
  if (job.activity || changed_progress || data) {
    transition(tx, job, [&](Job& changed) {
      changed.activity.reset();
      if (data) write_data(tx, changed, *data);
      if (progress) changed.progress = *progress;
    });
  }
  return {job.resubmit, job.cancel};
}

void finish(Queue& queue, kv::Transaction& tx, const Attempt& attempt, std::optional<std::string_view> data,
            std::optional<std::string_view> progress) {
  Job job = owned(tx, attempt);
  const std::int64_t now = queue.clock().wall_ms();
  if (data) check_data(*data);
  check_progress(progress);
  const Job before = job;
  transition(tx, job, [&](Job& changed) {
    if (progress) changed.progress = *progress;
    changed.failures = 0;
    changed.last_error.clear();
    // Nobody sees them if the next run has data of its own.
    if (data && (!changed.resubmit || changed.next_chunks == kSameData)) write_data(tx, changed, *data);
    end_run(tx, changed, State::finished, now);
    if (changed.state == State::pending) remember_attempt(tx, before, changed, Outcome::finished, now);
  });
  queue.observer().ended(tx, before, job, Outcome::finished, now);
}

void fail(Queue& queue, kv::Transaction& tx, const Attempt& attempt, std::string_view error) {
  Job job = owned(tx, attempt);
  const TypeSettings settings = queue.type(tx, job.type);
  const std::int64_t now = queue.clock().wall_ms();
  const Job before = job;
  transition(tx, job, [&](Job& changed) {
    changed.failures += 1;
    changed.last_error =
        is_utf8(error) ? std::string(utf8_prefix(error, kMaxErrorBytes)) : "(an error that is not UTF-8)";
    if (changed.cancel || changed.failures >= settings.max_attempts) {
      end_run(tx, changed, State::failed, now);
    } else {
      const std::int64_t tick = changed.scheduled_at;
      make_pending(changed,
                   now + duration_cast<milliseconds>(backoff(queue, settings, changed.failures)).count(),
                   now);
      if (is_periodic(changed)) changed.scheduled_at = tick;
    }
    if (changed.state == State::pending)
      remember_attempt(tx, before, changed, Outcome::failed, now, changed.last_error);
  });
  queue.observer().ended(tx, before, job, Outcome::failed, now);
}

void check_owned(kv::Transaction& tx, const Attempt& attempt) { owned(tx, attempt); }

void release(Queue& queue, kv::Transaction& tx, const Attempt& attempt) {
  Job job = owned(tx, attempt);
  take_back(queue, tx, job, Outcome::released);
}

}  // namespace divan::jobs
