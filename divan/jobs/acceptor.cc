#include "divan/jobs/acceptor.h"

#include "divan/base/log.h"
#include "divan/jobs/rows.h"

namespace divan::jobs {
namespace {

// Without a watch (the store has too many), and as a net below the watches, somebody looks again this often.
constexpr std::chrono::seconds kFallbackPoll(5);
// Fewer lines than this are not worth a sweep.
constexpr std::size_t kMinLines = 64;
// Types whose queues are remembered.
constexpr std::size_t kMaxHeads = 10'000;
// Nodes that would disturb each other at the front of a queue take from among this many times what they want.
constexpr std::size_t kMaxSpread = 64;
// How long a commit whose answer is missing may be made yet.
constexpr std::chrono::seconds kUnsureFor(60);

// When a line is to look again that found nothing due before `next_due_at`.
MonotonicTime look_again_at(const Clock& clock, std::optional<std::int64_t> next_due_at) {
  // Cut before it becomes nanoseconds: a job may be due in millions of years.
  constexpr std::int64_t kLongest = std::chrono::milliseconds(kFallbackPoll).count();
  const std::int64_t pause =
      next_due_at ? std::clamp<std::int64_t>(*next_due_at - clock.wall_ms(), 1, kLongest) : kLongest;
  return clock.now() + std::chrono::milliseconds(pause);
}

// What ends the wait of a line that found less than it asked for.
std::vector<std::shared_ptr<kv::Watch>> watch(kv::Transaction& tx, std::span<const std::string> types,
                                              const std::set<std::string>& full) {
  std::vector<std::shared_ptr<kv::Watch>> watches;
  try {
    for (const auto& type : types) {
      // Of a type that is full it does not help that jobs are added, but that one ends, or the limit.
      if (full.contains(type)) {
        watches.push_back(tx.watch(count_key(type, State::running)));
        watches.push_back(tx.watch(type_key(type)));
      } else {
        watches.push_back(tx.watch(wake_key(type)));
      }
    }
  } catch (const kv::Error& error) {
    if (error.code() != kv::ErrorCode::too_many_watches) throw;
  }
  return watches;
}

// Who has lost a race with another node (or tries again for another reason) for the front of a queue takes
// jobs from a part of it that is four times as wide; who has not, from one that is smaller by one.
void adapt_spread(QueueHeads& heads, std::span<const std::string> types, int lost) {
  if (lost == 0) {
    for (auto& [type, head] : heads) head.spread = std::max(head.spread, std::size_t{2}) - 1;
    return;
  }
  for (const auto& type : types) {
    std::size_t& spread = heads[type].spread;
    spread = std::min(spread << std::min(2 * lost, 6), kMaxSpread);
  }
}

}  // namespace

// Guarded by its line's mutex, but for what never changes.
class Acceptor::Waiter {
 public:
  // False if that failed: then it comes back at its own time.
  bool try_wake() const {
    try {
      wake();
      return true;
    } catch (const std::exception& failure) {
      log::error("Somebody who waits for jobs could not be woken: {}", failure.what());
      return false;
    }
  }

  std::shared_ptr<Line> line;
  AcceptOptions options;
  std::function<void()> wake;
  bool looked_for = false;  // since it came
  bool served = false;      // by the look that is under way
  bool leaving = false;     // and is to be woken after the look, or after somebody has looked for it
  bool to_be_woken = false;
  bool abandoned = false;
  bool done = false;
  std::vector<AcceptedJob> jobs;
  std::exception_ptr error;
};

struct Acceptor::Line : std::enable_shared_from_this<Line> {
  std::vector<std::string> types;
  std::optional<std::int64_t> max_scheduled_at;

  std::mutex mutex;
  std::deque<std::shared_ptr<Waiter>> waiters;
  bool looking = false;
  bool woken = true;  // there may be jobs
  MonotonicTime look_at = MonotonicTime::max();
  std::vector<std::shared_ptr<kv::Watch>> watches;

  // Something happened that may mean jobs.
  void wake() {
    std::shared_ptr<Waiter> first;
    {
      std::lock_guard lock(mutex);
      woken = true;
      if (!looking && !waiters.empty()) first = waiters.front();
    }
    if (first) first->try_wake();
  }

  // Who is to take a step next: somebody for whom nobody has looked, unless there may be jobs for all; else
  // the first one, which minds the time.
  std::shared_ptr<Waiter> next() const {
    if (waiters.empty()) return nullptr;
    if (woken) return waiters.front();
    const auto it =
        std::find_if(waiters.begin(), waiters.end(), [](const auto& w) { return !w->looked_for; });
    return it == waiters.end() ? waiters.front() : *it;
  }

  // Takes a waiter out; answers who is to take a step in its place.
  std::shared_ptr<Waiter> remove(const std::shared_ptr<Waiter>& waiter) {
    const bool first = waiters.front() == waiter;
    std::erase(waiters, waiter);
    waiter->done = true;
    return first && !looking ? next() : nullptr;
  }

  // Somebody who is to be woken and has not been yet.
  std::shared_ptr<Waiter> take_to_be_woken() {
    const auto it =
        std::find_if(waiters.begin(), waiters.end(), [](const auto& w) { return w->to_be_woken; });
    if (it == waiters.end()) return nullptr;
    (*it)->to_be_woken = false;
    return *it;
  }
};

// Those for whom a look is made.
struct Acceptor::Party {
  std::vector<std::shared_ptr<Waiter>> waiters;
  std::vector<Taker> takers;  // one each

  Party(const Line& line, const Waiter& own) {
    std::size_t asked = 0;
    for (const auto& waiter : line.waiters) {
      // Who looks does so for itself at the least, however many jobs those before it ask for.
      if (asked >= kMaxAcceptLimit && waiter.get() != &own) continue;
      if (waiter->leaving && waiter->looked_for && waiter.get() != &own) continue;
      waiters.push_back(waiter);
      takers.push_back({.limit = waiter->options.limit,
                        .worker = waiter->options.worker,
                        .must_exist = !waiter->looked_for});
      asked += waiter->options.limit;
    }
  }
};

// What a look has found, beside what the takers got.
struct Acceptor::Seen {
  Found found;
  std::vector<std::shared_ptr<kv::Watch>> watches;
  std::exception_ptr failure;
};

Acceptor::~Acceptor() {
  for (const auto& [name, known] : lines_) {
    const auto line = known.lock();
    if (!line) continue;
    std::deque<std::shared_ptr<Waiter>> waiters;
    std::lock_guard lock(line->mutex);
    line->waiters.swap(waiters);
  }
}

std::shared_ptr<Acceptor::Waiter> Acceptor::join(std::vector<std::string> types, const AcceptOptions& options,
                                                 std::function<void()> wake) {
  std::string name;
  for (const auto& type : types) kv::tuple::Packer(name).string(type);
  if (options.max_scheduled_at) kv::tuple::Packer(name).integer(*options.max_scheduled_at);
  const auto waiter = std::make_shared<Waiter>();
  waiter->options = options;
  waiter->wake = std::move(wake);
  {
    std::lock_guard lock(lines_mutex_);
    if (lines_.size() >= 2 * lines_left_ + kMinLines) {
      std::erase_if(lines_, [](const auto& entry) { return entry.second.expired(); });
      lines_left_ = lines_.size();
    }
    auto& known = lines_[name];
    waiter->line = known.lock();
    if (!waiter->line) {
      known = waiter->line = std::make_shared<Line>();
      waiter->line->types = std::move(types);
      waiter->line->max_scheduled_at = options.max_scheduled_at;
    }
  }
  std::lock_guard lock(waiter->line->mutex);
  waiter->line->waiters.push_back(waiter);
  return waiter;
}

void Acceptor::look_again() {
  std::vector<std::shared_ptr<Line>> lines;
  {
    std::lock_guard lock(lines_mutex_);
    for (const auto& [name, known] : lines_) {
      if (auto line = known.lock()) lines.push_back(std::move(line));
    }
  }
  for (const auto& line : lines) line->wake();
}

Acceptor::Step Acceptor::step(const std::shared_ptr<Waiter>& waiter) {
  Line& line = *waiter->line;
  std::unique_lock lock(line.mutex);
  while (!waiter->done) {
    if (line.looking) return {};
    const bool first = line.waiters.front() == waiter;
    if (waiter->looked_for && !line.woken && clock_.now() < line.look_at)
      return {.look_at = first ? line.look_at : MonotonicTime::max()};
    look(line, lock, *waiter);
  }
  if (waiter->error) std::rethrow_exception(waiter->error);
  return {.done = true, .jobs = std::move(waiter->jobs)};
}

// From the commit until those who wait have their jobs nothing must fail, or jobs would run with nobody to
// run them: what can fail in between is done before, or leaves them to be given back.
void Acceptor::look(Line& line, std::unique_lock<std::mutex>& lock, const Waiter& own) {
  Party party(line, own);
  for (const auto& waiter : party.waiters) waiter->served = true;
  line.looking = true;
  line.woken = false;
  lock.unlock();
  Seen seen = ask(line, party.takers);
  lock.lock();
  line.looking = false;
  deal_out(line, party, seen);
  for (const auto& waiter : line.waiters) {
    // Where there are no more jobs there are none for those behind either.
    if (!line.woken) waiter->looked_for = true;
    waiter->to_be_woken |= waiter->leaving;
  }
  if (const auto next = line.next()) next->to_be_woken = true;
  lock.unlock();

  seen.watches.clear();
  for (const auto& waiter : party.waiters) {
    if (waiter.get() != &own && !waiter->try_wake()) give_back(abandon(waiter));
  }
  for (const auto& taker : party.takers) {
    if (!taker.jobs.empty()) give_back(taker.jobs, seen.failure != nullptr);
  }
  lock.lock();
  // Who looks is awake.
  while (const auto waiter = line.take_to_be_woken()) {
    if (waiter.get() == &own) continue;
    lock.unlock();
    waiter->try_wake();
    lock.lock();
  }
}

Acceptor::Seen Acceptor::ask(Line& line, std::vector<Taker>& takers) {
  Seen seen;
  QueueHeads heads;
  int tries = 0;
  try {
    give_back({});
    store_.run([&](kv::Transaction& tx) {
      heads = known_heads(line.types);
      if (tx.is_remote()) adapt_spread(heads, line.types, tries++);
      seen.found = deal(queue_, tx, line.types, line.max_scheduled_at, takers, &heads, order_);
      seen.watches = seen.found.more ? decltype(seen.watches)() : watch(tx, line.types, seen.found.full);
    });
  } catch (...) {
    seen.failure = std::current_exception();
    return seen;
  }
  try {
    remember(heads);
    for (const auto& one : seen.watches) {
      one->on_end([weak = line.weak_from_this()] {
        if (const auto waiting = weak.lock()) waiting->wake();
      });
    }
  } catch (const std::exception& error) {
    log::error("Jobs are looked for by the clock: {}", error.what());
    seen.watches.clear();
  }
  return seen;
}

QueueHeads Acceptor::known_heads(std::span<const std::string> types) {
  std::lock_guard lock(heads_mutex_);
  QueueHeads heads;
  for (const auto& type : types) {
    if (const auto known = heads_.find(type); known != heads_.end()) heads.insert(*known);
  }
  return heads;
}

void Acceptor::remember(const QueueHeads& heads) {
  std::lock_guard lock(heads_mutex_);
  // Of types that are gone.
  if (heads_.size() >= kMaxHeads) heads_.clear();
  for (const auto& [type, head] : heads) heads_.insert_or_assign(type, head);
}

// Leaves among the party those who are out of the line now, and to the takers the jobs that are to be given
// back: of those who have gone, and of a look that failed, since its transaction may have been committed all
// the same.
void Acceptor::deal_out(Line& line, Party& party, Seen& seen) {
  for (std::size_t i = 0; i < party.waiters.size(); ++i) {
    Waiter& waiter = *party.waiters[i];
    waiter.looked_for = true;
    waiter.served = false;
    waiter.error = seen.failure ? seen.failure : party.takers[i].error;
    if (!waiter.error && !waiter.abandoned) waiter.jobs.swap(party.takers[i].jobs);
    waiter.done = waiter.abandoned || waiter.error || !waiter.jobs.empty();
    if (waiter.done) std::erase(line.waiters, party.waiters[i]);
  }
  std::erase_if(party.waiters, [](const auto& waiter) { return !waiter->done; });
  if (!seen.found.undeclared.empty()) tell_of_undeclared(line, party, *seen.found.undeclared.begin());
  // They end the old watches, which call nobody who would wait for this lock.
  std::swap(line.watches, seen.watches);
  line.look_at = look_again_at(clock_, seen.found.next_due_at);
  if (seen.failure || seen.found.more) line.woken = true;
}

// All who wait for a type that is not declared, and want to know it, are out of the line.
void Acceptor::tell_of_undeclared(Line& line, Party& party, const std::string& type) {
  const auto wants_to_know = [](const auto& waiter) {
    return waiter->options.must_be_declared && waiter->jobs.empty() && !waiter->abandoned;
  };
  const auto error = std::make_exception_ptr(no_such_job_type(type));
  for (const auto& waiter : party.waiters) {
    if (wants_to_know(waiter)) waiter->error = error;
  }
  for (const auto& waiter : line.waiters) {
    if (!wants_to_know(waiter)) continue;
    waiter->error = error;
    waiter->done = true;
    party.waiters.push_back(waiter);
  }
  std::erase_if(line.waiters, [](const auto& waiter) { return waiter->done; });
}

bool Acceptor::leave(const std::shared_ptr<Waiter>& waiter) {
  Line& line = *waiter->line;
  std::shared_ptr<Waiter> next;
  {
    std::lock_guard lock(line.mutex);
    if (waiter->done || waiter->served || !waiter->looked_for) {
      waiter->leaving = true;
      return false;
    }
    next = line.remove(waiter);
  }
  if (next) next->try_wake();
  return true;
}

std::vector<AcceptedJob> Acceptor::abandon(const std::shared_ptr<Waiter>& waiter) {
  Line& line = *waiter->line;
  std::shared_ptr<Waiter> next;
  std::vector<AcceptedJob> jobs;
  {
    std::lock_guard lock(line.mutex);
    waiter->abandoned = true;
    if (waiter->done) {
      jobs = std::move(waiter->jobs);
    } else if (!waiter->served) {
      next = line.remove(waiter);
    }
  }
  if (next) next->try_wake();
  return jobs;
}

void Acceptor::give_back_later(std::span<const AcceptedJob> jobs, bool unsure) {
  const MonotonicTime until = unsure ? clock_.now() + kUnsureFor : MonotonicTime::min();
  std::lock_guard lock(unwanted_mutex_);
  for (const auto& job : jobs) unwanted_.push_back({job.attempt(), until});
}

void Acceptor::give_back(std::span<const AcceptedJob> jobs, bool unsure) {
  give_back_later(jobs, unsure);
  std::vector<Unwanted> all, left;
  {
    std::lock_guard lock(unwanted_mutex_);
    if (unwanted_.empty()) return;
    all.swap(unwanted_);
  }
  auto next = all.begin();
  try {
    for (; next != all.end(); ++next) {
      if (!release_unwanted(*next)) left.push_back(*next);
    }
  } catch (const std::exception& error) {
    log::warning("{} jobs that nobody works on cannot be given back yet: {}", all.end() - next, error.what());
    left.insert(left.end(), next, all.end());
  }
  std::lock_guard lock(unwanted_mutex_);
  std::move(left.begin(), left.end(), std::back_inserter(unwanted_));
}

// Whether that is settled.
bool Acceptor::release_unwanted(const Unwanted& unwanted) {
  const Attempt& attempt = unwanted.attempt;
  try {
    store_.run([&](kv::Transaction& tx) { release(queue_, tx, attempt); });
  } catch (const kv::Error&) { throw; } catch (const Error& error) {
    // It was not accepted after all, or is somebody else's by now.
    if (error.name() == "halt") return clock_.now() >= unwanted.until;
    log::error("Nobody works on job {}/{}, and it cannot be given back: {}", attempt.type, attempt.id,
               error.what());
  }
  return true;
}

std::vector<AcceptedJob> Acceptor::accept(std::span<const std::string> types, const AcceptOptions& options,
                                          MonotonicTime deadline) {
  const auto woken = std::make_shared<bool>(false);
  const auto waiter = join({types.begin(), types.end()}, options, [interrupt = interrupt_, woken] {
    std::lock_guard lock(interrupt->mutex);
    *woken = true;
    interrupt->changed.notify_all();
  });
  for (;;) {
    Step found;
    try {
      found = step(waiter);
    } catch (...) {
      give_back(abandon(waiter));
      throw;
    }
    if (found.done) return std::move(found.jobs);
    std::unique_lock lock(interrupt_->mutex);
    if (interrupt_->interrupted || clock_.now() >= deadline) {
      lock.unlock();
      if (leave(waiter)) return {};
      lock.lock();
      clock_.wait_until(lock, interrupt_->changed, MonotonicTime::max(), [&] { return *woken; });
    } else {
      clock_.wait_until(lock, interrupt_->changed, std::min(deadline, found.look_at),
                        [&] { return *woken || interrupt_->interrupted; });
    }
    *woken = false;
  }
}

void Acceptor::interrupt() {
  std::lock_guard lock(interrupt_->mutex);
  interrupt_->interrupted = true;
  interrupt_->changed.notify_all();
}

}  // namespace divan::jobs
