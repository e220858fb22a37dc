// Accepting jobs: who gets which of those that are due.
#include <deque>
#include <numeric>

#include "divan/jobs/attempts.h"
#include "divan/jobs/periodic.h"
#include "divan/jobs/rows.h"

namespace divan::jobs {
namespace {

// Missed occurrences of a type that are moved to their next tick at once.
constexpr std::size_t kMaxSkipped = 100;
// Damaged rows of a type that one look goes past. Each look reads them again.
constexpr std::size_t kMaxDamaged = 1000;
// Due jobs that due_jobs() reads, from the first on.
constexpr std::size_t kMaxFrontChecked = 20;
// The data of jobs that are accepted together: with the next one, somewhat more.
constexpr std::size_t kMaxAcceptBytes = 8'000'000;
// Priorities without a due job that a look goes over behind due ones, if it can go on there the next time.
constexpr std::size_t kMaxPrioritiesBehind = 100;

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
void start(Queue& queue, kv::Transaction& tx, Job& job, const TypeSettings& settings,
           const workers::WorkerRef* worker, std::int64_t now) {
  const auto max_runtime = with_limits(settings, job.limits).max_runtime;
  transition(tx, job, [&](Job& changed) {
    changed.state = State::running;
    changed.lock = queue.rng().uuid();
    // The version that this transaction reads is above that of the commit which ended the attempt before.
    changed.epoch = tx.read_version();
    changed.attempt += 1;
    changed.started_at = now;
    changed.deadline =
        max_runtime ? now + std::chrono::duration_cast<std::chrono::milliseconds>(*max_runtime).count() : 0;
    changed.worker_role = worker ? worker->role : std::string();
    changed.worker_id = worker ? worker->id : std::string();
  });
  queue.observer().started(tx, job, std::max(job.due_at, job.added_at));
}

// The queue of a type that jobs are taken from.
struct Source {
  std::string type;
  TypeSettings settings;
  std::size_t places;  // how many more jobs of the type may run
  QueueHead head;      // as it is known
  std::size_t spread;
  DueScanner scanner;
  DueScan scanned{};  // the last scan; its jobs are those that wait to be taken
  std::deque<DueJob> next{};
  bool leaves = false;  // the last scan has found others, too
  bool begun = false;
  std::size_t taken = 0;
  std::size_t skipped = 0;  // missed occurrences
  std::size_t passed = 0;   // occurrences and damaged jobs in front, since the last scan
};

// One call of deal(). Of the queues' first jobs, it takes again and again the one that comes first.
class Deal {
 public:
  Deal(Queue& queue, kv::Transaction& tx, std::optional<std::int64_t> max_scheduled_at,
       std::span<Taker> takers, QueueHeads* heads, const DueOrder& order)
      : queue_(queue),
        tx_(tx),
        takers_(queue, tx, takers),
        heads_(heads),
        order_(order),
        now_(queue.clock().wall_ms()),
        due_until_(max_scheduled_at.value_or(now_)) {}

  Found run(std::span<const std::string> types) {
    for (const auto& type : std::set<std::string>(types.begin(), types.end())) open(type);
    while (!is_full()) {
      Source* const source = first();
      if (source == nullptr || !take(*source)) break;
    }
    for (auto& source : sources_) close(source);
    found_.more |= is_full();
    return std::move(found_);
  }

 private:
  bool is_full() const {
    return takers_.free() == 0 || jobs_ >= kMaxAcceptLimit || bytes_ >= kMaxAcceptBytes;
  }

  void open(const std::string& type) {
    const auto settings = queue_.find_type(tx_, type);
    if (!settings) found_.undeclared.insert(type);
    // Where nobody takes any, there is only to say which types there are not.
    if (!settings || settings->paused || is_full()) return;
    const QueueHead head = head_of(type);
    sources_.push_back(
        {.type = type,
         .settings = *settings,
         .places = free_places(tx_, type, *settings),
         .head = head,
         // Under a limit nodes go one after the other anyway.
         .spread = settings->max_running ? 1 : head.spread,
         .scanner = DueScanner(queue_, tx_, type, due_until_, heads_ ? kMaxPrioritiesBehind : SIZE_MAX)});
  }

  // The queue whose first job comes before those of the others; null if none has one.
  Source* first() {
    Source* first = nullptr;
    for (auto& source : sources_) {
      if (source.next.empty() && may_have_more(source)) scan(source);
      if (source.next.empty()) continue;
      if (first == nullptr || source.next.front().is_before(first->next.front())) first = &source;
    }
    return first;
  }

  // A scan finds as many as can be taken. So a further one is only for those that it had to pass.
  static bool may_have_more(const Source& source) {
    if (source.taken >= source.places) return false;
    if (!source.begun) return true;
    return source.passed > 0 && source.skipped < kMaxSkipped && source.scanner.left_out() < kMaxDamaged;
  }

  void scan(Source& source) {
    const std::size_t wanted =
        std::min({source.places - source.taken, takers_.free(), kMaxAcceptLimit - jobs_});
    source.scanned =
        order_ ? source.scanner.scan(kMaxOrdered, kMaxOrdered, source.head)
               : source.scanner.scan(wanted, std::min(wanted * source.spread, kMaxAcceptLimit), source.head);
    source.begun = true;
    source.passed = 0;
    auto& due = source.scanned;
    const std::size_t slices = order_ ? 1 : std::max(due.jobs.size() / wanted, std::size_t{1});
    source.leaves = order_ ? put_in_order(due, wanted) : choose(due, wanted, slices);
    // Where the past is asked for, no time makes more jobs due.
    if (due.head.next_due_at && due_until_ >= now_) look_again_at(*due.head.next_due_at);
    if (tx_.is_remote()) expect_jobs(source.type, due.jobs);
    if (heads_) (*heads_)[source.type].spread = std::min(source.spread, slices);
    source.next.assign(due.jobs.begin(), due.jobs.end());
  }

  void expect_jobs(const std::string& type, std::span<const DueJob> jobs) {
    kv::Expectation reads;
    for (const auto& job : jobs) expect_job(reads, type, job.id);
    tx_.expect(reads);
  }

  void close(Source& source) {
    found_.more |= source.scanned.cut;
    // What is known of the queue's front, if nothing of it was left there.
    if (heads_ && source.begun && source.next.empty() && !source.leaves) {
      const std::size_t spread = (*heads_)[source.type].spread;
      (*heads_)[source.type] = std::move(source.scanned.head);
      (*heads_)[source.type].spread = spread;
    }
    // What else is due is for the next call.
    if (source.skipped >= kMaxSkipped) look_again_at(now_);
    if (source.settings.max_running && source.taken > 0) take_turn(tx_, source.type);
    if (source.taken >= source.places) found_.full.insert(source.type);
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

  // Leaves one of the slices of which each has as many as are wanted; returns true if there were others.
  bool choose(DueScan& due, std::size_t wanted, std::size_t slices) {
    auto& jobs = due.jobs;
    if (jobs.size() <= wanted) return false;
    const std::size_t first = slices > 1 ? queue_.rng().below(slices) * wanted : 0;
    jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(first + wanted), jobs.end());
    jobs.erase(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(first));
    return true;
  }

  // The same with an order of the caller's.
  bool put_in_order(DueScan& due, std::size_t wanted) const {
    const std::size_t found = due.jobs.size();
    order_(due.jobs);
    if (due.jobs.size() > wanted)
      due.jobs.erase(due.jobs.begin() + static_cast<std::ptrdiff_t>(wanted), due.jobs.end());
    return due.jobs.size() < found;
  }

  // Takes the first job of a queue, or goes past it. False if nobody takes jobs any more.
  bool take(Source& source) {
    const DueJob& due = source.next.front();
    auto job = read(source.type, due);
    if (!job) {
      source.scanner.leave_out(due);
      ++source.passed;
    } else if (is_to_be_skipped(job->job, now_)) {
      transition(tx_, job->job, [&](Job& changed) { begin_next_occurrence(changed, now_); });
      ++source.skipped;
      ++source.passed;
    } else {
      const auto [taker, worker] = takers_.next();
      if (taker == nullptr) return false;
      ++jobs_;
      ++source.taken;
      bytes_ += job->data.size();
      start(queue_, tx_, job->job, source.settings, worker, now_);
      taker->jobs.push_back(*std::move(job));
    }
    source.next.pop_front();
    return true;
  }

  // A damaged job is reported and left where it is: it keeps no other from being run.
  std::optional<AcceptedJob> read(const std::string& type, const DueJob& due) {
    std::string damage;
    try {
      auto job = read_job(tx_, type, due.id);
      if (job && job->state == State::pending) {
        std::string data = read_data(tx_, *job);
        return AcceptedJob{*std::move(job), std::move(data)};
      }
      damage = "It is queued and not pending.";
    } catch (const kv::Error&) { throw; } catch (const Error& error) {
      damage = error.reason();
    }
    queue_.report_damage(due.key, fmt::format("Job {}/{} cannot be run: {}", type, due.id, damage));
    return std::nullopt;
  }

  void look_again_at(std::int64_t ms) { found_.next_due_at = std::min(found_.next_due_at.value_or(ms), ms); }

  Queue& queue_;
  kv::Transaction& tx_;
  Takers takers_;
  QueueHeads* const heads_;
  const DueOrder& order_;
  const std::int64_t now_;
  const std::int64_t due_until_;
  std::vector<Source> sources_;
  Found found_;
  std::size_t jobs_ = 0;
  std::size_t bytes_ = 0;
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

}  // namespace

Found deal(Queue& queue, kv::Transaction& tx, std::span<const std::string> types,
           std::optional<std::int64_t> max_scheduled_at, std::span<Taker> takers, QueueHeads* heads,
           const DueOrder& order) {
  if (tx.is_remote()) expect_deal(tx, types, takers, heads);
  return Deal(queue, tx, max_scheduled_at, takers, heads, order).run(types);
}

Accepted accept(Queue& queue, kv::Transaction& tx, std::span<const std::string> types,
                const AcceptOptions& options) {
  Taker taker{.limit = options.limit, .worker = options.worker};
  auto found = deal(queue, tx, types, options.max_scheduled_at, std::span(&taker, 1));
  if (taker.error) std::rethrow_exception(taker.error);
  return {std::move(taker.jobs), found.next_due_at, std::move(found.full)};
}

std::vector<DueJob> due_jobs(Queue& queue, kv::Transaction& tx, std::string_view type) {
  DueScanner scanner(queue, tx, type, queue.clock().wall_ms(), kMaxPrioritiesBehind);
  auto due = std::move(scanner.scan(kMaxOrdered, kMaxOrdered, {}).jobs);
  // Damaged ones are accepted by nobody. At the front they would stand before all others for ever.
  std::size_t looked_at = 0;
  std::erase_if(due, [&](const DueJob& one) {
    if (++looked_at > kMaxFrontChecked) return false;
    const auto job = queue.find_whole(tx, type, one.id, kv::Isolation::snapshot);
    return !job || job->state != State::pending;
  });
  return due;
}

}  // namespace divan::jobs
