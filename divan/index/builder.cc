#include "divan/index/builder.h"

#include <absl/cleanup/cleanup.h>

#include "divan/base/log.h"
#include "divan/index/build_state.h"
#include "divan/index/deletion_watch.h"

namespace divan::index {
namespace {

// A build fails if the store has broken it off so often, and for so long, without letting it get any further.
constexpr int kMaxBrokenOff = 20;
constexpr Duration kMaxBrokenOffFor = std::chrono::minutes(2);
// What was longer ago is another matter.
constexpr Duration kBrokenOffLapse = std::chrono::minutes(10);

// Whether it may work another time: the store has not answered, or not in time. A build need not fail for
// that.
bool is_of_the_moment(const Error& error) {
  const auto* const of_store = dynamic_cast<const kv::Error*>(&error);
  return of_store != nullptr &&
         (of_store->retryable() || of_store->code() == kv::ErrorCode::transaction_timed_out);
}

// A build has turned out not to be small, and there is no slot for a large one.
class NotSmall : public std::exception {
 public:
  const char* what() const noexcept override { return "The build takes long, and is to wait for its turn."; }
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
  worker_ = monitor_.add(kBackgroundRole, worker_id, "{}");
  for (std::size_t i = 0; i < threads(); ++i) {
    threads_.emplace_back([this] { work(); });
    pthread_setname_np(threads_.back().native_handle(), "builder");
  }
}

// One of the idle threads, until it has its job or the transaction that was to take one has come to nothing.
class Builder::Claim {
 public:
  explicit Claim(Builder& builder) : builder_(builder) {}
  ~Claim() {
    // Its transaction has failed for good. If that was for want of an answer, the commit may have been made
    // or be made yet: then the job has nobody to run it. (After a failure that is tried again it was not
    // made.)
    if (job_ && std::uncaught_exceptions() > 0) builder_.acceptor_.give_back_later({&*job_, 1}, true);
    std::lock_guard lock(builder_.mutex_);
    --builder_.claimed_;
    builder_.changed_.notify_all();
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  void take(jobs::AcceptedJob job) { job_ = std::move(job); }
  void hand_over() {
    std::lock_guard lock(builder_.mutex_);
    builder_.taken_.push_back(*std::move(job_));
    job_.reset();
  }

 private:
  Builder& builder_;
  std::optional<jobs::AcceptedJob> job_;
};

void Builder::try_claim(kv::Transaction& tx, std::string_view type) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || claimed_ + taken_.size() >= idle_) return;
    ++claimed_;
  }
  const auto claim = std::make_shared<Claim>(*this);
  const std::vector<std::string> types{std::string(type)};
  std::vector<jobs::AcceptRequest> requests{{.worker = worker(), .must_exist = false}};
  jobs::accept_for(queue_, tx, types, std::nullopt, requests, nullptr,
                   [this](std::vector<jobs::DueJob>& due) { slots_.order(due); });
  if (requests.front().jobs.empty()) return;
  claim->take(std::move(requests.front().jobs.front()));
  tx.after_commit([claim] { claim->hand_over(); });
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
        --busy_;
      } else if (stopping_) {
        return;
      }
    } catch (const Error& error) {
      log::error("Index jobs could not be accepted, which is tried again in a second: {}", error.what());
      pause();
    }
  }
}

// Waits for one; none if there is nothing to wait for any more.
std::optional<jobs::AcceptedJob> Builder::next_job() {
  std::unique_lock lock(mutex_);
  ++idle_;
  // A thread that was claimed stays.
  clock_.wait_until(lock, changed_, MonotonicTime::max(),
                    [this] { return !taken_.empty() || (idle_ > claimed_ && (stopping_ || !accepting_)); });
  --idle_;
  if (!taken_.empty()) {
    auto job = std::move(taken_.front());
    taken_.pop_front();
    return job;
  }
  if (stopping_) return std::nullopt;
  accepting_ = true;
  lock.unlock();
  // Another thread waits for the next one.
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

// The worker may have been evicted and registered again in between: jobs are accepted for its name.
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
  const BrokenOff before = take_broken_off(state.attempt);
  std::atomic<bool> deleted = false;  // the database, as far as was heard
  const auto slot = slots_.begin({.type = state.attempt.type,
                                  .job = state.attempt.id,
                                  .database = std::string(database_of_build(state.attempt.id)),
                                  .priority = state.priority,
                                  .started_at = clock_.wall_ms()});
  const absl::Cleanup leave = [&] {
    if (slot) slots_.end(*slot);
    if (slots_.reset_skipped()) acceptor_.poll_again();
  };
  // The worker lives, so nobody misses the job.
  const auto break_off = [&](const std::exception& error) {
    log::warning("{} was broken off; it is given back as soon as possible: {}", state.name(), error.what());
    pause();
    // If it is to stop, its worker's end gives all back.
    if (!stopping_) acceptor_.give_back({&job, 1});
  };
  try {
    // Two threads have found the last slot free.
    if (!slot) return give_back(state);
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
      const DeletionWatch watch(catalog_.bus(), state.request.database,
                                [&deleted, stop = state.stop]() mutable {
                                  deleted = true;
                                  stop.request_stop();
                                });
      build(state);
    } catch (const NotSmall&) { give_back(state); } catch (const Error& error) {
      if (error.name() == "halt") throw;
      if (stopping_ && error.status() == 503) return give_back(state);
      if (deleted && error.status() == 503) return end_stopped(state);
      if (is_of_the_moment(error) && may_break_off(state, before)) throw;
      give_up(state, error);
    } catch (const std::exception& error) { give_up(state, internal_error(error.what())); }
  } catch (const Error& error) {
    // Somebody else has the job, or nobody needs it any more.
    if (error.name() == "halt")
      return log::info("{} was left to others, as far as it is needed: {}", state.name(), error.what());
    break_off(error);
  } catch (const std::exception& error) { break_off(error); }
}

void Builder::give_up(Build& state, const Error& error) {
  bool gone = false;
  store_.run([&](kv::Transaction& tx) {
    gone = is_gone(state, tx);
    if (gone) return jobs::finish(queue_, tx, state.attempt);
    if (!state.keys) return jobs::fail(queue_, tx, state.attempt, error.what());
    fail_build(queue_, tx, *state.keys, state.attempt, error.what(), error.name() == kFunctionFailed,
               state.worked);
  });
  if (gone) return log::info("{} ends with the database.", state.name());
  log::warning("{} failed; it goes on when ken or a query asks for it again: {}", state.name(), error.what());
}

// Its database was deleted, or one of that name that was there before.
void Builder::end_stopped(Build& state) {
  const bool gone = store_.run([&](kv::Transaction& tx) {
    if (!is_gone(state, tx)) return false;
    jobs::finish(queue_, tx, state.attempt);
    return true;
  });
  if (!gone) return give_back(state);
  log::info("{} ends with the database.", state.name());
}

// Notes that the store broke a build off; false if it is to fail for that.
bool Builder::may_break_off(const Build& state, const BrokenOff& before) {
  const MonotonicTime now = clock_.now();
  BrokenOff after{1, now, now};
  if (!state.worked && before.count > 0 && now - before.last < kBrokenOffLapse)
    after = {before.count + 1, before.first, now};
  if (after.count >= kMaxBrokenOff && now - after.first >= kMaxBrokenOffFor) return false;
  std::lock_guard lock(mutex_);
  std::erase_if(broken_off_, [&](const auto& entry) { return now - entry.second.last >= kBrokenOffLapse; });
  broken_off_.insert_or_assign({state.attempt.type, state.attempt.id}, after);
  return true;
}

// What is known of the job from before; it is forgotten unless it is broken off again.
Builder::BrokenOff Builder::take_broken_off(const jobs::Attempt& attempt) {
  std::lock_guard lock(mutex_);
  const auto found = broken_off_.extract({attempt.type, attempt.id});
  return found.empty() ? BrokenOff() : found.mapped();
}

// Whether its database was deleted.
bool Builder::is_gone(const Build& state, kv::Transaction& tx) {
  if (state.request.database.empty()) return false;
  const auto database = catalog_.find(tx, state.request.database);
  return !database || database->number() != state.request.database_number;
}

}  // namespace divan::index
