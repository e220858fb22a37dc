#include "divan/index/builder.h"

#include <absl/cleanup/cleanup.h>

#include "divan/base/check.h"
#include "divan/base/log.h"
#include "divan/events/deletion_watch.h"
#include "divan/index/build_state.h"

namespace divan::index {
namespace {

// A build fails if the store has interrupted it this often, and for this long, without progress.
constexpr int kMaxInterruptions = 20;
constexpr Duration kMaxInterruptedFor = std::chrono::minutes(2);
// Older interruptions do not count.
constexpr Duration kInterruptionLifetime = std::chrono::minutes(10);

// Returns true if the store failed for a cause that may pass. Such an error interrupts a build, but need not
// fail it.
bool is_transient(const std::exception& error) {
  const auto* const of_store = dynamic_cast<const kv::Error*>(&error);
  return of_store != nullptr && of_store->transient();
}

// Returns true for what a client would receive as 503: something is closing or overloaded.
bool is_unavailable(const std::exception& error) {
  const auto* const other = dynamic_cast<const Error*>(&error);
  return is_transient(error) || (other != nullptr && other->status() == 503);
}

// A build turned out not to be small, and there is no slot for a large one.
class NotSmall : public std::exception {
 public:
  const char* what() const noexcept override { return "The build is large, and must wait for a slot."; }
};

}  // namespace

Builder::Builder(kv::Database& store, docs::Catalog& catalog, jobs::Queue& queue, workers::Monitor& monitor,
                 const Kinds& kinds, const Clock& clock, BuilderOptions options)
    : store_(store),
      catalog_(catalog),
      queue_(queue),
      monitor_(monitor),
      kinds_(kinds),
      clock_(clock),
      options_(options),
      slots_(options.threads, clock),
      acceptor_(queue, store, clock, [this](std::vector<jobs::DueJob>& due) { slots_.order(due); }) {}

void Builder::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  acceptor_.interrupt();
}

Builder::~Builder() {
  stop();
  for (auto& thread : threads_) thread.join();
}

void Builder::start(std::string_view worker_id) {
  DIVAN_CHECK(threads_.empty(), "the builder was already started");
  worker_ = monitor_.add(kBackgroundRole, worker_id, "{}");
  for (std::size_t i = 0; i < threads(); ++i) {
    threads_.emplace_back([this] { work(); });
    pthread_setname_np(threads_.back().native_handle(), "builder");
  }
}

void Builder::try_claim(kv::Transaction& tx, std::string_view type) {
  const auto job = std::make_shared<std::optional<jobs::AcceptedJob>>();
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || claimed_ + claimed_jobs_.size() >= idle_) return;
    tx.on_outcome([this, job](const kv::CommitOutcome& outcome) { end_claim(*job, outcome); });
    ++claimed_;
  }
  const std::vector<std::string> types{std::string(type)};
  std::vector<jobs::AcceptRequest> requests{{.worker = worker(), .must_exist = false}};
  jobs::accept_for(queue_, tx, types, std::nullopt, requests, nullptr,
                   [this](std::vector<jobs::DueJob>& due) { slots_.order(due); });
  if (!requests.front().jobs.empty()) *job = std::move(requests.front().jobs.front());
}

void Builder::end_claim(std::optional<jobs::AcceptedJob>& job, const kv::CommitOutcome& outcome) {
  // The transaction may have been committed or may still commit: then no thread would run the job.
  if (job && outcome.unknown()) acceptor_.release_undelivered_later({&*job, 1}, true);
  std::lock_guard lock(mutex_);
  DIVAN_CHECK(claimed_ > 0, "the claim of a thread was not counted");
  --claimed_;
  if (job && outcome.committed()) claimed_jobs_.push_back(*std::move(job));
  changed_.notify_all();
}

void Builder::pause() {
  std::unique_lock lock(mutex_);
  clock_.wait_until(lock, changed_, clock_.now() + std::chrono::seconds(1),
                    [this] { return stopping_.load(); });
}

void Builder::work() {
  for (;;) {
    try {
      const auto job = next_job();
      if (job) {
        ++busy_;
        run(*job);
        DIVAN_CHECK(busy_ > 0, "a busy thread was not counted");
        --busy_;
      } else if (stopping_) {
        return;
      }
    } catch (const std::exception& error) {
      log::error("Cannot accept index jobs; retrying in a second: {}", error.what());
      pause();
    }
  }
}

// Waits for a job; returns nullopt if polling found none, or when stopping.
std::optional<jobs::AcceptedJob> Builder::next_job() {
  std::unique_lock lock(mutex_);
  ++idle_;
  // A claimed thread keeps waiting.
  clock_.wait_until(lock, changed_, MonotonicTime::max(), [this] {
    return !claimed_jobs_.empty() || (idle_ > claimed_ && (stopping_ || !accepting_));
  });
  DIVAN_CHECK(idle_ > 0, "an idle thread was not counted");
  --idle_;
  if (!claimed_jobs_.empty()) {
    auto job = std::move(claimed_jobs_.front());
    claimed_jobs_.pop_front();
    return job;
  }
  if (stopping_) return std::nullopt;
  accepting_ = true;
  lock.unlock();
  // Another thread polls the queue next.
  const absl::Cleanup leave = [this] {
    std::lock_guard again(mutex_);
    accepting_ = false;
    changed_.notify_all();
  };
  return accept_job();
}

std::optional<jobs::AcceptedJob> Builder::accept_job() {
  std::vector<std::string> types;
  for (const auto& kind : kinds_) types.emplace_back(kind->name());
  auto jobs = acceptor_.accept(types, {.limit = 1, .worker = worker()}, MonotonicTime::max());
  if (jobs.empty()) return std::nullopt;
  return std::move(jobs.front());
}

// Without an incarnation, since the worker may have been evicted and registered again meanwhile.
workers::WorkerRef Builder::worker() const {
  const auto ref = worker_->ref();
  return {ref.role, ref.id, {}};
}

void Builder::run(const jobs::AcceptedJob& job) {
  Build state;
  state.attempt = job.attempt();
  state.priority = job.job.priority;
  state.started_on = clock_.wall_ms() / 1000;
  state.began = clock_.now();
  const Interruptions before = take_interruptions(state.attempt);
  std::atomic<bool> deleted = false;  // whether a deletion of the database was published
  const auto slot = slots_.begin({.type = state.attempt.type,
                                  .job = state.attempt.id,
                                  .database = std::string(database_of_build(state.attempt.id)),
                                  .priority = state.priority,
                                  .started_at = clock_.wall_ms()});
  const absl::Cleanup leave = [&] {
    if (slot) slots_.end(*slot);
    if (slots_.reset_skipped()) acceptor_.poll_again();
  };
  // The worker is alive, so the job would not be reclaimed otherwise.
  const auto interrupt = [&](const std::exception& error) {
    log::warning("{} was interrupted; it is released as soon as possible: {}", state.name(), error.what());
    pause();
    // When stopping, the end of the worker releases all jobs.
    if (!stopping_) acceptor_.release_undelivered({&job, 1});
  };
  try {
    // Another thread has taken the last slot.
    if (!slot) return release(state);
    state.slot = *slot;
    state.limits = {.urgent = slots_.is_small(*slot),
                    .waited_for = state.priority == kQueryPriority,
                    .on_slow =
                        [this, id = *slot] {
                          if (!slots_.enlarge(id)) throw NotSmall();
                        },
                    .stop = state.stop.get_token()};
    try {
      state.request = BuildRequest::parse(job.data);
      slots_.set_design_document(*slot, state.request.design_document);
      const events::DeletionWatch watch(catalog_.bus(), state.request.database,
                                        [&deleted, stop = state.stop]() mutable {
                                          deleted = true;
                                          stop.request_stop();
                                        });
      build(state);
    } catch (const NotSmall&) { release(state); } catch (const IndexChanged&) {
      release(state);
    } catch (const jobs::LockLost&) { throw; } catch (const std::exception& error) {
      if (stopping_ && is_unavailable(error)) return release(state);
      if (deleted && is_unavailable(error)) return end_stopped(state);
      if (is_transient(error) && may_interrupt(state, before)) throw;
      fail(state, error);
    }
  } catch (const jobs::LockLost& error) {
    // Another worker has the job, or it is no longer needed.
    log::info("{} was reclaimed or is no longer needed: {}", state.name(), error.what());
  } catch (const std::exception& error) { interrupt(error); }
}

void Builder::fail(Build& state, const std::exception& error) {
  bool gone = false;
  store_.run([&](kv::Transaction& tx) {
    gone = is_database_deleted(state, tx);
    if (gone) return jobs::finish(queue_, tx, state.attempt);
    if (!state.keys) return jobs::fail(queue_, tx, state.attempt, error.what());
    fail_build(queue_, tx, *state.keys, state.attempt, error.what(),
               dynamic_cast<const FunctionFailed*>(&error) != nullptr, state.worked);
  });
  if (gone) return log::info("{} ends, since its database was deleted.", state.name());
  log::warning("{} failed; it resumes when ken or a query requests it again: {}", state.name(), error.what());
}

// The build was stopped because its database, or an earlier one of the same name, was deleted.
void Builder::end_stopped(Build& state) {
  const bool gone = store_.run([&](kv::Transaction& tx) {
    if (!is_database_deleted(state, tx)) return false;
    jobs::finish(queue_, tx, state.attempt);
    return true;
  });
  if (!gone) return release(state);
  log::info("{} ends, since its database was deleted.", state.name());
}

// Records that the store interrupted a build; returns false if the build must fail.
bool Builder::may_interrupt(const Build& state, const Interruptions& before) {
  const MonotonicTime now = clock_.now();
  Interruptions after{1, now, now};
  if (!state.worked && before.count > 0 && now - before.last < kInterruptionLifetime)
    after = {before.count + 1, before.first, now};
  if (after.count >= kMaxInterruptions && now - after.first >= kMaxInterruptedFor) return false;
  std::lock_guard lock(mutex_);
  std::erase_if(interruptions_,
                [&](const auto& entry) { return now - entry.second.last >= kInterruptionLifetime; });
  interruptions_.insert_or_assign({state.attempt.type, state.attempt.id}, after);
  return true;
}

// Removes and returns the previous interruptions of the job.
Builder::Interruptions Builder::take_interruptions(const jobs::Attempt& attempt) {
  std::lock_guard lock(mutex_);
  const auto found = interruptions_.extract({attempt.type, attempt.id});
  return found.empty() ? Interruptions() : found.mapped();
}

// Returns true if the database was deleted.
bool Builder::is_database_deleted(const Build& state, kv::Transaction& tx) {
  if (state.request.database.empty()) return false;
  const auto database = catalog_.find(tx, state.request.database);
  return !database || database->number() != state.request.database_number;
}

}  // namespace divan::index
