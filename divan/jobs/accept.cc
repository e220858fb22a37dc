// Accepting jobs: assigns due jobs to requests.
#include <fmt/core.h>

#include <deque>
#include <numeric>

#include "divan/base/check.h"
#include "divan/jobs/attempts.h"
#include "divan/jobs/periodic.h"
#include "divan/jobs/rows.h"
#include "divan/jobs/worker_batch.h"

namespace divan::jobs {
namespace {

// The most missed occurrences of a type that one pass moves to their next tick.
constexpr std::size_t kMaxSkipped = 100;
// The most damaged rows of a type that one pass skips. Each pass reads them again.
constexpr std::size_t kMaxDamaged = 1000;
// The most due jobs that due_jobs() checks, from the first on.
constexpr std::size_t kMaxFrontChecked = 20;
// A pass ends when the data of its jobs exceed this.
constexpr std::size_t kMaxAcceptBytes = 8'000'000;
// The most priorities without a due job that a pass scans after due jobs, if the next pass can continue
// there.
constexpr std::size_t kMaxPrioritiesBehind = 100;

// Returns how many more jobs of the type may run; SIZE_MAX without a limit.
//
// Only accepts increase the count of running jobs. Accepts under a limit conflict with each other
// (max_running_range), so that one of two that have read the same count fails. Decreases of the count need
// not conflict, so it is a snapshot read. Accepts without a limit do not conflict: they have read the
// settings, and cannot commit once these have changed.
std::size_t free_slots(kv::Transaction& tx, std::string_view type, const TypeSettings& settings) {
  if (!settings.max_running) return SIZE_MAX;
  const std::int64_t running =
      kv::decode_counter(tx.get(count_key(type, State::running), kv::Isolation::snapshot));
  const std::int64_t free = *settings.max_running - std::max<std::int64_t>(running, 0);
  return free > 0 ? static_cast<std::size_t>(free) : 0;
}

// Makes accepts of a type with `max_running` conflict with each other.
void conflict_with_accepts(kv::Transaction& tx, std::string_view type) {
  tx.add_read_conflict(max_running_range(type));
  tx.add_write_conflict(max_running_range(type));
}

workers::WorkerRef registered(QueueCore& queue, kv::Transaction& tx, const workers::WorkerRef& worker) {
  const auto found = queue.registry().find(tx, worker.role, worker.id);
  if (!found || (!worker.incarnation.empty() && worker.incarnation != found->incarnation))
    throw not_found("The worker is not registered.");
  return *found;
}

// The requests of a pass, in order.
class AcceptRequests {
 public:
  AcceptRequests(QueueCore& queue, kv::Transaction& tx, std::span<AcceptRequest> requests,
                 std::int64_t first_batch)
      : queue_(queue),
        tx_(tx),
        requests_(requests),
        limits_(requests.size()),
        workers_(requests.size()),
        batches_(requests.size(), WorkerBatch(first_batch)) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i].jobs.clear();
      requests[i].error = nullptr;
      limits_[i] = std::min(requests[i].limit, kMaxAcceptLimit);
      if (requests[i].must_exist) find_worker(i);
      if (requests[i].first && !requests[i].error) requests[i].first(tx);
    }
  }

  /// The number of further jobs that they request.
  std::size_t free() const { return std::accumulate(limits_.begin(), limits_.end(), std::size_t{0}); }

  /// A request that gets a job; null if all requests are satisfied.
  struct Next {
    AcceptRequest* request = nullptr;
    const workers::WorkerRef* worker = nullptr;  // may be null
    WorkerBatch* batch = nullptr;
  };
  /// The request that gets the next job.
  Next next() {
    for (; next_ < requests_.size(); ++next_) {
      if (limits_[next_] > 0) find_worker(next_);
      if (limits_[next_] == 0) continue;
      DIVAN_CHECK(requests_[next_].jobs.size() < kMaxAcceptLimit, "{} jobs for one request",
                  requests_[next_].jobs.size());
      --limits_[next_];
      return {&requests_[next_], workers_[next_] ? &*workers_[next_] : nullptr, &batches_[next_]};
    }
    return {};
  }

  /// Called when all jobs are accepted.
  void finish() {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (workers_[i]) batches_[i].write(tx_, *workers_[i]);
    }
  }

 private:
  void find_worker(std::size_t i) {
    if (!requests_[i].worker || workers_[i]) return;
    try {
      workers_[i] = registered(queue_, tx_, *requests_[i].worker);
    } catch (const Error&) {
      requests_[i].error = std::current_exception();
      limits_[i] = 0;
    }
  }

  QueueCore& queue_;
  kv::Transaction& tx_;
  const std::span<AcceptRequest> requests_;
  std::vector<std::size_t> limits_;
  std::vector<std::optional<workers::WorkerRef>> workers_;
  std::vector<WorkerBatch> batches_;
  std::size_t next_ = 0;
};

// Returns true if the job is pending and `due` is its entry. If the copy in an entry is that of another one,
// an accept would leave the entry in the queue.
bool is_entry_of(const DueJob& due, const Job& job) {
  return job.state == State::pending && job.priority == due.priority && job.due_at == due.due_at;
}

// Starts an attempt at the job.
void start(QueueCore& queue, kv::Transaction& tx, Job& job, const TypeSettings& settings,
           const workers::WorkerRef* worker, WorkerBatch& batch, std::int64_t now) {
  DIVAN_CHECK(job.state == State::pending, "a job that is {} is accepted", state_name(job.state));
  const auto max_runtime = with_limits(settings, job.limits).max_runtime;
  transition(tx, job, [&](Job& changed) {
    changed.state = State::running;
    changed.lock = queue.rng().uuid();
    // Greater than the epoch of the last attempt: that is an older read version than the version of the
    // commit which ended the attempt, and this transaction has read that commit.
    changed.epoch = tx.read_version();
    changed.attempt += 1;
    changed.started_at = now;
    changed.deadline =
        max_runtime ? now + std::chrono::duration_cast<std::chrono::milliseconds>(*max_runtime).count() : 0;
    changed.worker_role = worker ? worker->role : std::string();
    changed.worker_id = worker ? worker->id : std::string();
    changed.batch = worker ? batch.add(tx, *worker, changed) : 0;
  });
  queue.job_metrics().started(tx, job, std::max(job.due_at, job.added_at));
}

// The queue of one type in a pass.
struct Source {
  std::string type;
  TypeSettings settings;
  std::size_t slots;   // how many more jobs of the type may run at once
  QueueCursor cursor;  // as the caller knows it
  std::size_t candidate_window;
  DueScanner scanner;
  DueScan scanned{};  // the last scan
  std::deque<DueJob> next{};
  bool has_others = false;  // the last scan has found due jobs that are not in `next`
  bool begun = false;       // it was scanned
  std::size_t taken = 0;    // accepted jobs
  std::size_t skipped = 0;  // missed occurrences
  std::size_t passed = 0;   // missed occurrences and damaged jobs since the last scan
};

// One call of accept_for(). Repeatedly accepts the job that comes first among the first jobs of the queues.
class AcceptPass {
 public:
  AcceptPass(QueueCore& queue, kv::Transaction& tx, std::optional<std::int64_t> max_scheduled_at,
             std::span<AcceptRequest> requests, QueueCursors* cursors, const DueOrder& order,
             std::int64_t first_batch)
      : queue_(queue),
        tx_(tx),
        requests_(queue, tx, requests, first_batch),
        cursors_(cursors),
        order_(order),
        now_(queue.clock().wall_ms()),
        due_until_(max_scheduled_at.value_or(now_)) {}

  ScanResult run(std::span<const std::string> types) {
    for (const auto& type : std::set<std::string>(types.begin(), types.end())) open(type);
    while (!is_full()) {
      Source* const source = first();
      if (source == nullptr || !take(*source)) break;
    }
    for (auto& source : sources_) close(source);
    requests_.finish();
    found_.more |= is_full();
    return std::move(found_);
  }

 private:
  bool is_full() const {
    return requests_.free() == 0 || jobs_ >= kMaxAcceptLimit || bytes_ >= kMaxAcceptBytes;
  }

  void open(const std::string& type) {
    const auto settings = queue_.find_type(tx_, type);
    if (!settings) found_.undeclared.insert(type);
    // Without requests, only undeclared types matter.
    if (!settings || settings->paused || is_full()) return;
    const QueueCursor cursor = cursor_of(type);
    sources_.push_back(
        {.type = type,
         .settings = *settings,
         .slots = free_slots(tx_, type, *settings),
         .cursor = cursor,
         // Under a limit, accepts of different nodes run one after the other anyway.
         .candidate_window = settings->max_running ? 1 : cursor.candidate_window,
         .scanner = DueScanner(queue_, tx_, type, due_until_, cursors_ ? kMaxPrioritiesBehind : SIZE_MAX)});
  }

  // The queue whose first job precedes those of the others; null if all are empty.
  Source* first() {
    Source* first = nullptr;
    for (auto& source : sources_) {
      if (source.next.empty() && may_have_more(source)) scan(source);
      if (source.next.empty()) continue;
      if (first == nullptr || source.next.front().is_before(first->next.front())) first = &source;
    }
    return first;
  }

  // A scan finds as many jobs as can be accepted; another one is needed only in place of those it skipped.
  static bool may_have_more(const Source& source) {
    if (source.taken >= source.slots) return false;
    if (!source.begun) return true;
    return source.passed > 0 && source.skipped < kMaxSkipped && source.scanner.skipped() < kMaxDamaged;
  }

  void scan(Source& source) {
    DIVAN_CHECK(source.taken <= source.slots && jobs_ <= kMaxAcceptLimit, "{} jobs of {}, {} in all",
                source.taken, source.slots, jobs_);
    const std::size_t wanted =
        std::min({source.slots - source.taken, requests_.free(), kMaxAcceptLimit - jobs_});
    DIVAN_CHECK(wanted > 0, "a scan for no jobs");
    source.scanned =
        order_ ? source.scanner.scan(kMaxOrdered, kMaxOrdered, source.cursor)
               : source.scanner.scan(wanted, std::min(wanted * source.candidate_window, kMaxAcceptLimit),
                                     source.cursor);
    source.begun = true;
    source.passed = 0;
    auto& due = source.scanned;
    const std::size_t slices = order_ ? 1 : std::max(due.jobs.size() / wanted, std::size_t{1});
    source.has_others = order_ ? put_in_order(due, wanted) : choose(due, wanted, slices);
    // If the requested time is in the past, waiting makes no more jobs due.
    if (due.cursor.next_due_at && due_until_ >= now_) poll_again_at(*due.cursor.next_due_at);
    if (tx_.is_remote()) prefetch_jobs(source.type, due.jobs);
    if (cursors_) (*cursors_)[source.type].candidate_window = std::min(source.candidate_window, slices);
    source.next.assign(due.jobs.begin(), due.jobs.end());
  }

  void prefetch_jobs(const std::string& type, std::span<const DueJob> jobs) {
    kv::Prefetch reads;
    for (const auto& job : jobs) prefetch_pending_job(reads, type, job.id, job.header);
    tx_.prefetch(reads);
  }

  void close(Source& source) {
    found_.more |= source.scanned.cut;
    // The cursor advances if the pass left no job before it.
    if (cursors_ && source.begun && source.next.empty() && !source.has_others) {
      const std::size_t candidate_window = (*cursors_)[source.type].candidate_window;
      (*cursors_)[source.type] = std::move(source.scanned.cursor);
      (*cursors_)[source.type].candidate_window = candidate_window;
    }
    // The next pass handles the remaining missed occurrences.
    if (source.skipped >= kMaxSkipped) poll_again_at(now_);
    if (source.settings.max_running && source.taken > 0) conflict_with_accepts(tx_, source.type);
    if (source.taken >= source.slots) found_.full.insert(source.type);
  }

  // The cursor of the type's queue; at the queue's beginning if a job has become pending since.
  QueueCursor cursor_of(const std::string& type) {
    if (cursors_ == nullptr) return {};
    QueueCursor& cursor = (*cursors_)[type];
    auto wakes = tx_.get(wake_key(type), kv::Isolation::snapshot).value_or("");
    const bool holds = cursor.wakes == wakes && cursor.next_due_at.value_or(INT64_MAX) > due_until_;
    if (!holds) cursor = {.wakes = std::move(wakes), .candidate_window = cursor.candidate_window};
    return cursor;
  }

  // Keeps a random slice of `wanted` jobs. Returns true if there are others.
  bool choose(DueScan& due, std::size_t wanted, std::size_t slices) {
    auto& jobs = due.jobs;
    if (jobs.size() <= wanted) return false;
    const std::size_t first = slices > 1 ? queue_.rng().below(slices) * wanted : 0;
    DIVAN_CHECK(first + wanted <= jobs.size(), "jobs {} to {} of {}", first, first + wanted, jobs.size());
    jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(first + wanted), jobs.end());
    jobs.erase(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(first));
    return true;
  }

  // Keeps the first jobs in the caller's order. Returns true if there are others.
  bool put_in_order(DueScan& due, std::size_t wanted) const {
    const std::size_t found = due.jobs.size();
    order_(due.jobs);
    DIVAN_CHECK(due.jobs.size() <= found, "{} jobs of {} were put in order", due.jobs.size(), found);
    if (due.jobs.size() > wanted)
      due.jobs.erase(due.jobs.begin() + static_cast<std::ptrdiff_t>(wanted), due.jobs.end());
    return due.jobs.size() < found;
  }

  // Accepts the first job of a queue, or skips it. Returns false if all requests are satisfied.
  bool take(Source& source) {
    DIVAN_CHECK(!source.next.empty(), "a job is taken from an empty queue");
    const DueJob& due = source.next.front();
    auto job = read(source.type, due);
    if (!job) {
      source.scanner.skip(due);
      ++source.passed;
    } else if (is_to_be_skipped(job->job, now_)) {
      transition(tx_, job->job, [&](Job& changed) { begin_next_occurrence(changed, now_); });
      ++source.skipped;
      ++source.passed;
    } else {
      const auto [request, worker, batch] = requests_.next();
      if (request == nullptr) return false;
      DIVAN_CHECK(source.taken < source.slots, "{} jobs of a type that may run {} more", source.taken + 1,
                  source.slots);
      ++jobs_;
      ++source.taken;
      bytes_ += job->data.size();
      start(queue_, tx_, job->job, source.settings, worker, *batch, now_);
      request->jobs.push_back(*std::move(job));
    }
    source.next.pop_front();
    return true;
  }

  // Returns nullopt for a damaged job, which is reported and skipped, so that it does not block others.
  std::optional<AcceptedJob> read(const std::string& type, const DueJob& due) {
    std::string damage;
    try {
      auto job = read_pending_job(tx_, type, due.id, due.header);
      if (job && is_entry_of(due, *job)) {
        std::string data = read_data(tx_, *job);
        return AcceptedJob{*std::move(job), std::move(data)};
      }
      damage = "It is in the queue but not pending.";
    } catch (const Error& error) { damage = error.reason(); }
    queue_.report_damage(due.key, fmt::format("Job {}/{} cannot be run: {}", type, due.id, damage));
    return std::nullopt;
  }

  void poll_again_at(std::int64_t ms) { found_.next_due_at = std::min(found_.next_due_at.value_or(ms), ms); }

  QueueCore& queue_;
  kv::Transaction& tx_;
  AcceptRequests requests_;
  QueueCursors* const cursors_;
  const DueOrder& order_;
  const std::int64_t now_;
  const std::int64_t due_until_;
  std::vector<Source> sources_;
  ScanResult found_;
  std::size_t jobs_ = 0;
  std::size_t bytes_ = 0;
};

// Prefetches the rows that a pass over short queues reads before it finds a job.
void prefetch_accept(kv::Transaction& tx, std::span<const std::string> types,
                     std::span<const AcceptRequest> requests, const QueueCursors* cursors,
                     std::int64_t first_batch) {
  kv::Prefetch reads;
  std::size_t limit = 1;
  for (const auto& request : requests) {
    limit += request.limit;
    if (request.worker) workers::Registry::prefetch(reads, request.worker->role, request.worker->id);
    if (request.worker && request.limit > 1) WorkerBatch::prefetch(reads, *request.worker, first_batch);
  }
  for (const auto& type : types) {
    reads.key(type_key(type));
    reads.key(wake_key(type));
    reads.key(count_key(type, State::running));
    std::size_t candidate_window = 1;
    if (cursors != nullptr && cursors->contains(type)) candidate_window = cursors->at(type).candidate_window;
    reads.range(DueScanner::all(type).range(), std::min(limit * candidate_window, kMaxAcceptLimit + 1));
  }
  tx.prefetch(reads);
}

}  // namespace

ScanResult accept_for(QueueCore& queue, kv::Transaction& tx, std::span<const std::string> types,
                      std::optional<std::int64_t> max_scheduled_at, std::span<AcceptRequest> requests,
                      QueueCursors* cursors, const DueOrder& order) {
  const std::int64_t first_batch = WorkerBatch::choose(queue.rng());
  if (tx.is_remote()) prefetch_accept(tx, types, requests, cursors, first_batch);
  return AcceptPass(queue, tx, max_scheduled_at, requests, cursors, order, first_batch).run(types);
}

Accepted accept(QueueCore& queue, kv::Transaction& tx, std::span<const std::string> types,
                const AcceptOptions& options) {
  AcceptRequest request{.limit = options.limit, .worker = options.worker};
  auto found = accept_for(queue, tx, types, options.max_scheduled_at, std::span(&request, 1));
  if (request.error) std::rethrow_exception(request.error);
  return {std::move(request.jobs), found.next_due_at, std::move(found.full)};
}

namespace {

// Decodes the copy of a pending job's header; nullopt if it is damaged, which is reported.
std::optional<Job> decode_or_report(QueueCore& queue, std::string_view type, const DueJob& due) {
  try {
    return decode_job(type, due.id, due.header);
  } catch (const Error& error) {
    queue.report_damage(due.key, fmt::format("Job {}/{} is skipped: {}", type, due.id, error.reason()));
    return std::nullopt;
  }
}

}  // namespace

std::vector<DueJob> due_jobs(QueueCore& queue, kv::Transaction& tx, std::string_view type) {
  DueScanner scanner(queue, tx, type, queue.clock().wall_ms(), kMaxPrioritiesBehind);
  auto due = std::move(scanner.scan(kMaxOrdered, kMaxOrdered, {}).jobs);
  // Damaged jobs are never accepted, and would stay at the front of the queue.
  std::size_t checked = 0;
  std::erase_if(due, [&](const DueJob& one) {
    if (++checked > kMaxFrontChecked) return false;
    const auto job = one.header.empty() ? queue.find_or_report(tx, type, one.id, kv::Isolation::snapshot)
                                        : decode_or_report(queue, type, one);
    return !job || !is_entry_of(one, *job);
  });
  return due;
}

}  // namespace divan::jobs
