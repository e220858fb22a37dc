#include "divan/jobs/acceptor.h"

#include <algorithm>
#include <deque>
#include <exception>

#include "divan/base/check.h"
#include "divan/base/log.h"
#include "divan/base/notifier.h"
#include "divan/jobs/rows.h"

namespace divan::jobs {
namespace {

// How often a wait queue is polled in case that a watch was lost or the store had none left.
constexpr std::chrono::seconds kFallbackPoll(5);
// Expired wait queues are not swept as long as there are fewer than this.
constexpr std::size_t kMinWaitQueues = 64;
// The most types whose cursors are kept.
constexpr std::size_t kMaxCursors = 10'000;
// The largest QueueCursor::candidate_window.
constexpr std::size_t kMaxCandidateWindow = 64;
// The most jobs that the transaction of an add accepts: one more than it adds, so that it sees whether there
// are others.
constexpr std::size_t kMaxHandedOver = 2;
// For how long a commit whose outcome is unknown may still take effect.
constexpr std::chrono::seconds kMaxCommitDelay(60);

// The wait queue of the waiters for these types.
std::string wait_queue_name(std::span<const std::string> types,
                            std::optional<std::int64_t> max_scheduled_at = std::nullopt) {
  std::string name;
  for (const auto& type : types) kv::tuple::Packer(name).string(type);
  if (max_scheduled_at) kv::tuple::Packer(name).integer(*max_scheduled_at);
  return name;
}

// When a wait queue is to be polled again if nothing is due before `next_due_at`.
MonotonicTime poll_again_at(const Clock& clock, std::optional<std::int64_t> next_due_at) {
  // Cut before it becomes nanoseconds: a job may be due in millions of years.
  constexpr std::int64_t kLongest = std::chrono::milliseconds(kFallbackPoll).count();
  const std::int64_t pause =
      next_due_at ? std::clamp<std::int64_t>(*next_due_at - clock.wall_ms(), 1, kLongest) : kLongest;
  return clock.now() + std::chrono::milliseconds(pause);
}

// Sets the watches that end a wait for jobs of these types.
std::vector<std::shared_ptr<kv::Watch>> watch(kv::Transaction& tx, std::span<const std::string> types,
                                              const std::set<std::string>& full) {
  std::vector<std::shared_ptr<kv::Watch>> watches;
  const auto add = [&](std::string_view key) {
    if (auto watch = tx.try_watch(key)) watches.push_back(std::move(watch));
  };
  for (const auto& type : types) {
    // More jobs of a type that is full cannot be accepted until one ends or the limit changes.
    if (full.contains(type)) {
      add(count_key(type, State::running));
      add(type_key(type));
    } else {
      add(wake_key(type));
    }
  }
  return watches;
}

// Each retry of a poll, most likely after a conflict with another node at the front of a queue, makes the
// windows four times as large. A poll without retries makes them smaller by one.
void adapt_candidate_window(QueueCursors& cursors, std::span<const std::string> types, int retries) {
  if (retries == 0) {
    for (auto& [type, cursor] : cursors)
      cursor.candidate_window = std::max(cursor.candidate_window, std::size_t{2}) - 1;
    return;
  }
  for (const auto& type : types) {
    std::size_t& candidate_window = cursors[type].candidate_window;
    candidate_window = std::min(candidate_window << std::min(2 * retries, 6), kMaxCandidateWindow);
  }
}

}  // namespace

// A waiter is `joined` until the first poll for it, or a poll for others that leaves no jobs for it. It is
// `polling` during each poll for it, and `waiting` between these. At the end it is `done`: after a poll that
// had jobs for it or failed, or when it was taken out of the queue. Protected by its wait queue's mutex,
// except members that never change.
class Acceptor::Waiter {
 public:
  enum class State {
    joined,     // no poll has been made for it yet
    polling,    // the poll under way may accept jobs for it
    abandoned,  // the same, and the poll releases these jobs
    waiting,    // for more jobs than the last poll found
    done,       // has left the wait queue, with jobs or an error unless it was taken out
  };

  // Returns false if `wake` throws. The caller then calls step() only at the time that it knows.
  bool try_wake() const {
    try {
      wake();
      return true;
    } catch (const std::exception& failure) {
      log::error("A waiter for jobs cannot be woken: {}", failure.what());
      return false;
    }
  }

  std::shared_ptr<WaitQueue> wait_queue;
  AcceptOptions options;
  std::function<void()> wake;
  State state = State::joined;
  bool leaving = false;  // leave() has returned false: wake the waiter after a poll
  std::vector<AcceptedJob> jobs;
  std::exception_ptr error;
};

struct Acceptor::WaitQueue {
  std::vector<std::string> types;
  std::optional<std::int64_t> max_scheduled_at;

  Mutex mutex{MutexRank::wait_queue, "WaitQueue::mutex"};  // protects the members below and the waiters
  std::deque<std::shared_ptr<Waiter>> waiters;
  bool polling = false;
  bool may_have_jobs = true;  // there may be jobs that the last poll did not find
  MonotonicTime poll_at = MonotonicTime::max();
  std::vector<std::shared_ptr<kv::Watch>> watches;

  // Called when there may be jobs.
  void wake() {
    std::shared_ptr<Waiter> first;
    {
      std::lock_guard lock(mutex);
      may_have_jobs = true;
      if (!polling && !waiters.empty()) first = waiters.front();
    }
    if (first) first->try_wake();
  }

  // The waiter that must call step() next: the first one for which no poll has been made, unless there may be
  // jobs for all; otherwise the first one, which also polls when a time has come. Null if there is none.
  std::shared_ptr<Waiter> next() const {
    if (waiters.empty()) return nullptr;
    if (may_have_jobs) return waiters.front();
    const auto it = std::ranges::find(waiters, Waiter::State::joined, &Waiter::state);
    return it == waiters.end() ? waiters.front() : *it;
  }

  // Takes a waiter out. Returns the one that must call step() in its place, or null.
  std::shared_ptr<Waiter> remove(const std::shared_ptr<Waiter>& waiter) {
    DIVAN_CHECK(!waiters.empty(), "a waiter leaves an empty queue");
    const bool first = waiters.front() == waiter;
    const auto left = std::erase(waiters, waiter);
    DIVAN_CHECK(left == 1, "a waiter was {} times in its queue", left);
    waiter->state = Waiter::State::done;
    return first && !polling ? next() : nullptr;
  }
};

// The waiters that a poll is made for.
struct Acceptor::AcceptBatch {
  std::vector<std::shared_ptr<Waiter>> waiters;
  std::vector<AcceptRequest> requests;  // one each

  // `poller` is null if none of them makes the poll.
  AcceptBatch(const WaitQueue& wait_queue, const Waiter* poller, std::size_t max_jobs) {
    std::size_t requested = 0;
    for (const auto& waiter : wait_queue.waiters) {
      const bool joined = waiter->state == Waiter::State::joined;
      // The poll includes the waiter that makes it, however many jobs those before it request.
      if (waiter.get() != poller && (requested >= max_jobs || (waiter->leaving && !joined))) continue;
      std::size_t limit = waiter->options.limit;
      if (poller == nullptr) limit = std::min(limit, max_jobs - requested);
      waiters.push_back(waiter);
      requests.push_back({.limit = limit, .worker = waiter->options.worker, .must_exist = joined});
      requested += limit;
    }
  }
};

// What a poll has found besides the jobs.
struct Acceptor::PollResult {
  ScanResult found;
  std::vector<std::shared_ptr<kv::Watch>> watches;
  std::exception_ptr failure;
  bool unknown = false;  // it is not known whether the jobs were accepted
};

// A poll from next_step() or poll_for_add() to its end.
class Acceptor::Poll {
 public:
  Poll(std::shared_ptr<WaitQueue> of, std::shared_ptr<Waiter> by, std::size_t most)
      : poller(std::move(by)),
        wait_queue(std::move(of)),
        max_jobs(most),
        batch(*wait_queue, poller.get(), max_jobs) {}
  ~Poll() { DIVAN_CHECK(ended, "a poll was not ended: the other waiters would wait for it"); }
  Poll(const Poll&) = delete;
  Poll& operator=(const Poll&) = delete;

  const std::shared_ptr<Waiter> poller;  // null: the transaction of an add
  const std::shared_ptr<WaitQueue> wait_queue;
  const std::size_t max_jobs;
  AcceptBatch batch;
  PollResult result{};
  QueueCursors cursors{};
  int tries = 0;  // calls of run_poll()
  bool ended = false;

  // The transaction of an add makes it in its first try only.
  bool is_made() const { return poller ? tries > 0 : tries == 1; }
};

Acceptor::~Acceptor() {
  for (const auto& [name, known] : wait_queues_) {
    const auto wait_queue = known.lock();
    if (!wait_queue) continue;
    std::deque<std::shared_ptr<Waiter>> waiters;
    std::lock_guard lock(wait_queue->mutex);
    wait_queue->waiters.swap(waiters);
    for (const auto& waiter : waiters) waiter->state = Waiter::State::done;
  }
}

std::shared_ptr<Acceptor::Waiter> Acceptor::join(std::vector<std::string> types, const AcceptOptions& options,
                                                 std::function<void()> wake) {
  const std::string name = wait_queue_name(types, options.max_scheduled_at);
  const auto waiter = std::make_shared<Waiter>();
  waiter->options = options;
  waiter->wake = std::move(wake);
  {
    std::lock_guard lock(wait_queues_mutex_);
    if (wait_queues_.size() >= 2 * wait_queues_left_ + kMinWaitQueues) {
      std::erase_if(wait_queues_, [](const auto& entry) { return entry.second.expired(); });
      wait_queues_left_ = wait_queues_.size();
    }
    auto& known = wait_queues_[name];
    waiter->wait_queue = known.lock();
    if (!waiter->wait_queue) {
      known = waiter->wait_queue = std::make_shared<WaitQueue>();
      waiter->wait_queue->types = std::move(types);
      waiter->wait_queue->max_scheduled_at = options.max_scheduled_at;
    }
  }
  std::lock_guard lock(waiter->wait_queue->mutex);
  waiter->wait_queue->waiters.push_back(waiter);
  return waiter;
}

std::shared_ptr<Acceptor::WaitQueue> Acceptor::find_wait_queue(const std::string& name) {
  std::lock_guard lock(wait_queues_mutex_);
  const auto known = wait_queues_.find(name);
  return known == wait_queues_.end() ? nullptr : known->second.lock();
}

std::vector<std::shared_ptr<Acceptor::WaitQueue>> Acceptor::live_wait_queues() {
  std::vector<std::shared_ptr<WaitQueue>> wait_queues;
  std::lock_guard lock(wait_queues_mutex_);
  for (const auto& [name, known] : wait_queues_) {
    if (auto wait_queue = known.lock()) wait_queues.push_back(std::move(wait_queue));
  }
  return wait_queues;
}

void Acceptor::poll_again() {
  for (const auto& wait_queue : live_wait_queues()) wait_queue->wake();
}

Acceptor::Step Acceptor::step(const std::shared_ptr<Waiter>& waiter) {
  for (;;) {
    Step step = next_step(waiter);
    if (!step.poll) return step;
    std::exception_ptr failure;
    try {
      release_undelivered({});
      store_.run([&](kv::Transaction& tx) { run_poll(*step.poll, tx); });
    } catch (...) { failure = std::current_exception(); }
    end_poll(*step.poll, std::move(failure));
    release_undelivered({});
  }
}

Acceptor::Step Acceptor::next_step(const std::shared_ptr<Waiter>& waiter, std::size_t max_jobs) {
  WaitQueue& wait_queue = *waiter->wait_queue;
  std::lock_guard lock(wait_queue.mutex);
  if (waiter->state == Waiter::State::done) {
    if (waiter->error) std::rethrow_exception(waiter->error);
    return {.done = true, .jobs = std::move(waiter->jobs)};
  }
  if (wait_queue.polling) return {};
  DIVAN_CHECK(!wait_queue.waiters.empty(), "a waiter is not in its queue");
  const bool first = wait_queue.waiters.front() == waiter;
  const bool joined = waiter->state == Waiter::State::joined;
  if (!joined && !wait_queue.may_have_jobs && clock_.now() < wait_queue.poll_at)
    return {.poll_at = first ? wait_queue.poll_at : MonotonicTime::max()};
  return {.poll = begin_poll(waiter->wait_queue, waiter, max_jobs)};
}

// Requires the lock of the wait queue.
std::shared_ptr<Acceptor::Poll> Acceptor::begin_poll(const std::shared_ptr<WaitQueue>& wait_queue,
                                                     std::shared_ptr<Waiter> poller, std::size_t max_jobs) {
  auto poll = std::make_shared<Poll>(wait_queue, std::move(poller), max_jobs);
  const AcceptBatch& batch = poll->batch;
  DIVAN_CHECK(!batch.waiters.empty() && batch.waiters.size() == batch.requests.size(),
              "a poll of {} waiters with {} requests", batch.waiters.size(), batch.requests.size());
  for (const auto& one : batch.waiters) one->state = Waiter::State::polling;
  wait_queue->polling = true;
  wait_queue->may_have_jobs = false;
  return poll;
}

std::shared_ptr<Acceptor::Poll> Acceptor::poll_for_add(const std::string& type) {
  const auto wait_queue = find_wait_queue(wait_queue_name(std::span(&type, 1)));
  if (!wait_queue) return nullptr;
  std::vector<std::shared_ptr<kv::Watch>> watches;
  std::lock_guard lock(wait_queue->mutex);
  if (wait_queue->polling || wait_queue->may_have_jobs || wait_queue->waiters.empty()) return nullptr;
  const Waiter& first = *wait_queue->waiters.front();
  if (first.state != Waiter::State::waiting || first.leaving) return nullptr;
  auto poll = begin_poll(wait_queue, nullptr, kMaxHandedOver);
  // The commit would fire them.
  watches.swap(wait_queue->watches);
  return poll;
}

// Leaves the accepted jobs in the requests.
void Acceptor::run_poll(Poll& poll, kv::Transaction& tx, const std::function<void(kv::Transaction&)>& first) {
  DIVAN_CHECK(!first || poll.batch.requests.size() == 1, "a poll of {} waiters with a function",
              poll.batch.requests.size());
  poll.batch.requests.front().first = first;
  const auto& types = poll.wait_queue->types;
  auto& result = poll.result;
  const int retries = poll.tries++;
  if (!poll.is_made()) {
    // The waiters need not wait for the retries of an add.
    if (!poll.ended) drop_poll(poll);
    return;
  }
  tx.on_outcome([&result](const kv::CommitOutcome& outcome) { result.unknown = outcome.unknown(); });
  poll.cursors = known_cursors(types);
  if (tx.is_remote()) adapt_candidate_window(poll.cursors, types, retries);
  result.found = accept_for(queue_, tx, types, poll.wait_queue->max_scheduled_at, poll.batch.requests,
                            &poll.cursors, order_);
  result.watches = result.found.more ? decltype(result.watches)() : watch(tx, types, result.found.full);
}

// A failure between the commit and the moment at which the waiters have their jobs would leave jobs running
// that no worker has received. So what may fail is done before the commit, or its jobs are released here.
void Acceptor::end_poll(Poll& poll, std::exception_ptr failure) {
  DIVAN_CHECK(!poll.ended, "a poll is ended twice");
  poll.ended = true;
  WaitQueue& wait_queue = *poll.wait_queue;
  AcceptBatch& batch = poll.batch;
  PollResult& result = poll.result;
  result.failure = std::move(failure);
  if (!result.failure) {
    watch_for_jobs(poll);
  } else {
    result.found = {};
    result.watches.clear();
    // These were accepted by a try that was not committed.
    if (!result.unknown) {
      for (auto& request : batch.requests) request.jobs.clear();
    }
  }
  {
    std::lock_guard lock(wait_queue.mutex);
    wait_queue.polling = false;
    distribute(wait_queue, batch, result);
    if (!wait_queue.may_have_jobs && poll.max_jobs >= kMaxAcceptLimit) {
      // There are no jobs for the waiters behind those of the poll either.
      for (const auto& waiter : wait_queue.waiters) waiter->state = Waiter::State::waiting;
    }
  }
  result.watches.clear();
  for (const auto& waiter : batch.waiters) {
    if (waiter != poll.poller && !waiter->try_wake()) release_undelivered_later(abandon(waiter));
  }
  for (const auto& request : batch.requests) {
    if (!request.jobs.empty()) release_undelivered_later(request.jobs, result.unknown);
  }
  wake_after_poll(wait_queue, poll.poller.get());
}

bool Acceptor::end_add_poll(Poll& poll, std::exception_ptr failure) {
  DIVAN_CHECK(!poll.poller, "a waiter's poll is ended as that of an add");
  if (poll.is_made() && (!failure || poll.result.unknown)) {
    end_poll(poll, std::move(failure));
    return false;
  }
  if (!poll.ended) drop_poll(poll);
  return failure && poll.is_made();
}

// Ends a poll of which nothing was committed. The waiters stay, and one of them polls.
void Acceptor::drop_poll(Poll& poll) {
  DIVAN_CHECK(!poll.ended, "a poll is ended twice");
  poll.ended = true;
  {
    std::lock_guard lock(poll.wait_queue->mutex);
    poll.wait_queue->polling = false;
    poll.wait_queue->may_have_jobs = true;
    for (std::size_t i = 0; i < poll.batch.waiters.size(); ++i) {
      const auto& waiter = poll.batch.waiters[i];
      const bool abandoned = waiter->state == Waiter::State::abandoned;
      const bool joined = poll.batch.requests[i].must_exist;
      waiter->state = abandoned ? Waiter::State::done
                      : joined  ? Waiter::State::joined
                                : Waiter::State::waiting;
      if (abandoned) std::erase(poll.wait_queue->waiters, waiter);
    }
  }
  wake_after_poll(*poll.wait_queue, nullptr);
}

// Wakes the waiters that stay in the queue and have something to do: those that want to leave, and the one
// that must call step() next. `poller`, if not null, is awake.
void Acceptor::wake_after_poll(WaitQueue& wait_queue, const Waiter* poller) {
  std::vector<std::shared_ptr<Waiter>> waiters;
  {
    std::lock_guard lock(wait_queue.mutex);
    const auto next = wait_queue.polling ? nullptr : wait_queue.next();
    for (const auto& waiter : wait_queue.waiters) {
      if (waiter.get() != poller && (waiter->leaving || waiter == next)) waiters.push_back(waiter);
    }
  }
  for (const auto& waiter : waiters) waiter->try_wake();
}

// Sets the callbacks of the watches after the commit.
void Acceptor::watch_for_jobs(Poll& poll) {
  try {
    remember(poll.cursors);
    for (const auto& one : poll.result.watches) {
      one->on_end([weak = std::weak_ptr(poll.wait_queue)] {
        if (const auto waiting = weak.lock()) waiting->wake();
      });
    }
  } catch (const std::exception& error) {
    log::error("Jobs are polled for at intervals, without watches: {}", error.what());
    poll.result.watches.clear();
  }
}

QueueCursors Acceptor::known_cursors(std::span<const std::string> types) {
  std::lock_guard lock(cursors_mutex_);
  QueueCursors cursors;
  for (const auto& type : types) {
    if (const auto known = cursors_.find(type); known != cursors_.end()) cursors.insert(*known);
  }
  return cursors;
}

void Acceptor::remember(const QueueCursors& cursors) {
  std::lock_guard lock(cursors_mutex_);
  // Cursors of removed types are not erased one by one.
  if (cursors_.size() >= kMaxCursors) cursors_.clear();
  for (const auto& [type, cursor] : cursors) cursors_.insert_or_assign(type, cursor);
}

// Gives the jobs to the waiters. Afterwards the batch has the waiters that have left the queue, and the
// requests have the undelivered jobs: those of abandoned waiters, and those of a poll whose outcome is
// unknown.
void Acceptor::distribute(WaitQueue& wait_queue, AcceptBatch& batch, PollResult& result) {
  for (std::size_t i = 0; i < batch.waiters.size(); ++i) {
    Waiter& waiter = *batch.waiters[i];
    DIVAN_CHECK(waiter.state == Waiter::State::polling || waiter.state == Waiter::State::abandoned,
                "a waiter has left during a poll for it");
    const bool abandoned = waiter.state == Waiter::State::abandoned;
    waiter.error = result.failure ? result.failure : batch.requests[i].error;
    if (!waiter.error && !abandoned) waiter.jobs.swap(batch.requests[i].jobs);
    DIVAN_CHECK(waiter.jobs.size() <= waiter.options.limit, "{} jobs for a waiter that asked for {}",
                waiter.jobs.size(), waiter.options.limit);
    const bool done = abandoned || waiter.error || !waiter.jobs.empty();
    waiter.state = done ? Waiter::State::done : Waiter::State::waiting;
    if (done) std::erase(wait_queue.waiters, batch.waiters[i]);
  }
  std::erase_if(batch.waiters, [](const auto& waiter) { return waiter->state != Waiter::State::done; });
  if (!result.found.undeclared.empty()) fail_undeclared(wait_queue, batch, *result.found.undeclared.begin());
  // The caller ends the old watches without the lock, which their callbacks take.
  std::swap(wait_queue.watches, result.watches);
  wait_queue.poll_at = poll_again_at(clock_, result.found.next_due_at);
  if (result.failure || result.found.more) wait_queue.may_have_jobs = true;
}

// Fails the waiters that require their types to be declared, for a type that is not.
void Acceptor::fail_undeclared(WaitQueue& wait_queue, AcceptBatch& batch, const std::string& type) {
  const auto fails = [](const auto& waiter) {
    return waiter->options.must_be_declared && waiter->jobs.empty();
  };
  const auto error = std::make_exception_ptr(no_such_job_type(type));
  for (const auto& waiter : batch.waiters) {
    if (fails(waiter)) waiter->error = error;
  }
  for (const auto& waiter : wait_queue.waiters) {
    if (!fails(waiter)) continue;
    waiter->error = error;
    waiter->state = Waiter::State::done;
    batch.waiters.push_back(waiter);
  }
  std::erase_if(wait_queue.waiters, fails);
}

bool Acceptor::leave(const std::shared_ptr<Waiter>& waiter) {
  WaitQueue& wait_queue = *waiter->wait_queue;
  std::shared_ptr<Waiter> next;
  {
    std::lock_guard lock(wait_queue.mutex);
    if (waiter->state != Waiter::State::waiting) {
      waiter->leaving = true;
      return false;
    }
    next = wait_queue.remove(waiter);
  }
  if (next) next->try_wake();
  return true;
}

std::vector<AcceptedJob> Acceptor::abandon(const std::shared_ptr<Waiter>& waiter) {
  WaitQueue& wait_queue = *waiter->wait_queue;
  std::shared_ptr<Waiter> next;
  std::vector<AcceptedJob> jobs;
  {
    std::lock_guard lock(wait_queue.mutex);
    switch (waiter->state) {
      case Waiter::State::joined:
      case Waiter::State::waiting: next = wait_queue.remove(waiter); break;
      case Waiter::State::polling:
      case Waiter::State::abandoned: waiter->state = Waiter::State::abandoned; break;
      case Waiter::State::done: jobs = std::move(waiter->jobs); break;
    }
  }
  if (next) next->try_wake();
  return jobs;
}

void Acceptor::release_undelivered_later(std::span<const AcceptedJob> jobs, bool outcome_unknown) {
  const MonotonicTime until = outcome_unknown ? clock_.now() + kMaxCommitDelay : MonotonicTime::min();
  std::lock_guard lock(undelivered_mutex_);
  for (const auto& job : jobs) undelivered_.push_back({job.attempt(), until});
}

bool Acceptor::has_undelivered() {
  std::lock_guard lock(undelivered_mutex_);
  return !undelivered_.empty();
}

void Acceptor::release_undelivered(std::span<const AcceptedJob> jobs, bool outcome_unknown) {
  release_undelivered_later(jobs, outcome_unknown);
  std::vector<Undelivered> all, left;
  {
    std::lock_guard lock(undelivered_mutex_);
    if (undelivered_.empty()) return;
    all.swap(undelivered_);
  }
  auto next = all.begin();
  try {
    for (; next != all.end(); ++next) {
      if (!try_release(*next)) left.push_back(*next);
    }
  } catch (const std::exception& error) {
    log::warning(
        "{} undelivered jobs cannot be released; this is tried again with the next poll for jobs: {}",
        all.end() - next, error.what());
    left.insert(left.end(), next, all.end());
  }
  std::lock_guard lock(undelivered_mutex_);
  std::move(left.begin(), left.end(), std::back_inserter(undelivered_));
}

// Returns false if releasing the job must be tried again. Throws errors of the store.
bool Acceptor::try_release(const Undelivered& undelivered) {
  const Attempt& attempt = undelivered.attempt;
  try {
    store_.run([&](kv::Transaction& tx) { release(queue_, tx, attempt); });
  } catch (const LockLost&) {
    // The attempt has ended, or the commit that begins it has not taken effect so far.
    return clock_.now() >= undelivered.until;
  } catch (const Error& error) {
    log::error("Job {}/{} was accepted but not delivered, and cannot be released: {}", attempt.type,
               attempt.id, error.what());
  }
  return true;
}

std::vector<AcceptedJob> Acceptor::accept(std::span<const std::string> types, const AcceptOptions& options,
                                          MonotonicTime deadline) {
  const auto notifier = std::make_shared<Notifier>();
  const auto waiter = join({types.begin(), types.end()}, options, [notifier] { notifier->notify(); });
  for (;;) {
    Step found;
    try {
      found = step(waiter);
    } catch (...) {
      release_undelivered(abandon(waiter));
      throw;
    }
    if (found.done) return std::move(found.jobs);
    const bool leaving = interrupted_ || clock_.now() >= deadline;
    if (leaving && leave(waiter)) return {};
    notifier->wait_until(clock_, leaving ? MonotonicTime::max() : std::min(deadline, found.poll_at));
  }
}

void Acceptor::interrupt() {
  interrupted_ = true;
  for (const auto& wait_queue : live_wait_queues()) {
    std::deque<std::shared_ptr<Waiter>> waiters;
    {
      std::lock_guard lock(wait_queue->mutex);
      waiters = wait_queue->waiters;
    }
    for (const auto& waiter : waiters) waiter->try_wake();
  }
}

}  // namespace divan::jobs
