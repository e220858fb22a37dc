#include "divan/replicator/replicator.h"

#include <pthread.h>

#include <absl/cleanup/cleanup.h>

#include "divan/base/error.h"
#include "divan/base/log.h"
#include "divan/replicator/transfer.h"

namespace divan::replicator {
namespace {

using std::chrono::seconds;

// How often a running replication records its progress, and, while it waits, looks whether it is to end.
constexpr Duration kProgressInterval = seconds(1);
// How often the acceptor looks whether replications that run are to end.
constexpr Duration kLookInterval = seconds(5);
constexpr Duration kFirstPause = std::chrono::milliseconds(50);
constexpr Duration kLongestPause = seconds(5);
constexpr std::chrono::milliseconds kLongestWait = seconds(30);

// Errors after which trying again does not help.
bool is_permanent(const Error& error) {
  const int status = error.status();
  const bool may_change = status == 401 || status == 403 || status == 404 || status == 408 || status == 409 ||
                          status == 412 || status == 429;
  return status == 501 || (status >= 400 && status < 500 && !may_change);
}

}  // namespace

Replicator::Replicator(const LocalStore& local, jobs::Queue& queue, workers::Monitor& monitor, Rng& rng,
                       ReplicatorOptions options)
    : local_(local),
      queue_(queue),
      monitor_(monitor),
      rng_(rng),
      options_(options),
      acceptor_(queue, local.store, local.clock) {}

Replicator::~Replicator() {
  stop();
  if (acceptor_thread_.joinable()) acceptor_thread_.join();
  for (auto& run : runs_) run.thread.join();
}

void Replicator::start(std::string_view worker_id) {
  worker_ = monitor_.add(kRole, worker_id, "{}");
  acceptor_thread_ = std::thread([this] { accept_jobs(); });
  pthread_setname_np(acceptor_thread_.native_handle(), "replicator");
}

void Replicator::stop() {
  stopping_ = true;
  acceptor_.interrupt();
  std::lock_guard lock(mutex_);
  for (auto& run : runs_) {
    if (run.source != nullptr) run.source->stop();
    if (run.target != nullptr) run.target->stop();
  }
  changed_.notify_all();
}

void Replicator::interrupt(const std::string& id) {
  std::lock_guard lock(mutex_);
  for (auto& run : runs_) {
    if (run.job.job.id != id) continue;
    run.interrupted = true;
    if (run.source != nullptr) run.source->stop();
    if (run.target != nullptr) run.target->stop();
  }
  changed_.notify_all();
}

std::size_t Replicator::running() const {
  std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(runs_, [](const Run& run) { return !run.ended; }));
}

void Replicator::accept_jobs() {
  const std::vector<std::string> types{std::string(kJobType)};
  while (!stopping_) {
    try {
      join_ended();
      const std::size_t free = options_.max_jobs - std::min(options_.max_jobs, running());
      if (free == 0) {
        std::unique_lock lock(mutex_);
        local_.clock.wait_until(lock, changed_, local_.clock.now() + seconds(1),
                                [this] { return stopping_.load(); });
        continue;
      }
      const auto worker = worker_->ref();
      auto jobs =
          acceptor_.accept(types, {.limit = free, .worker = workers::WorkerRef{worker.role, worker.id, {}}},
                           local_.clock.now() + seconds(5));
      for (auto& job : jobs) begin(std::move(job));
      interrupt_cancelled();
    } catch (const std::exception& error) {
      log::error("Cannot accept replications; retrying in a second: {}", error.what());
      std::unique_lock lock(mutex_);
      local_.clock.wait_until(lock, changed_, local_.clock.now() + seconds(1),
                              [this] { return stopping_.load(); });
    }
  }
}

void Replicator::begin(jobs::AcceptedJob job) {
  std::lock_guard lock(mutex_);
  Run& one = runs_.emplace_back(std::move(job));
  one.thread = std::thread([this, &one] {
    run(one);
    one.ended = true;
    std::lock_guard again(mutex_);
    changed_.notify_all();
  });
  pthread_setname_np(one.thread.native_handle(), "replication");
}

// Those that were cancelled, or changed, by another process or a request that knows nothing of replications.
void Replicator::interrupt_cancelled() {
  if (local_.clock.now() < look_at_) return;
  look_at_ = local_.clock.now() + kLookInterval;
  std::vector<jobs::Attempt> attempts;
  {
    std::lock_guard lock(mutex_);
    for (const auto& run : runs_) {
      if (!run.ended && !run.interrupted) attempts.push_back(run.job.attempt());
    }
  }
  for (const auto& attempt : attempts) {
    const bool is_to_end = local_.store.run([&](kv::Transaction& tx) {
      const auto job = queue_.find(tx, kJobType, attempt.id, kv::Isolation::snapshot);
      return !job || job->lock != attempt.lock || job->cancel || job->resubmit;
    });
    if (is_to_end) interrupt(attempt.id);
  }
}

void Replicator::join_ended() {
  std::list<Run> ended;
  {
    std::lock_guard lock(mutex_);
    for (auto it = runs_.begin(); it != runs_.end();) {
      const auto next = std::next(it);
      if (it->ended) ended.splice(ended.end(), runs_, it);
      it = next;
    }
  }
  for (auto& run : ended) run.thread.join();
}

void Replicator::sleep(const Run& run, Duration pause) {
  std::unique_lock lock(mutex_);
  local_.clock.wait_until(lock, changed_, local_.clock.now() + pause,
                          [&] { return stopping_ || run.interrupted; });
}

std::unique_ptr<Peer> Replicator::open(const Endpoint& endpoint, const Replication& replication,
                                       const Fence& fence) const {
  if (endpoint.is_remote()) return connect(endpoint, rng_, options_.remote);
  return open_local(local_, endpoint.database, replication.user, fence);
}

void Replicator::run(Run& run) {
  ReplicationJob job;
  try {
    try {
      job = ReplicationJob::parse(run.job.data);
      replicate(run, job);
    } catch (const jobs::LockLost&) { throw; } catch (const std::exception& error) {
      if (stopping_ || run.interrupted) {
        local_.store.run([&](kv::Transaction& tx) { jobs::release(queue_, tx, run.job.attempt()); });
      } else {
        fail(run, job, error);
      }
    }
  } catch (const jobs::LockLost&) {
    log::info("Replication {} runs elsewhere, or is no longer needed.", run.job.job.id);
  } catch (const std::exception& error) {
    log::error("Replication {}: {}", run.job.job.id, error.what());
    if (!stopping_) acceptor_.release_undelivered({&run.job, 1});
  }
}

void Replicator::fail(const Run& run, const ReplicationJob& job, const std::exception& error) {
  const auto* const known = dynamic_cast<const Error*>(&error);
  const bool is_final = known != nullptr && is_permanent(*known);
  log::warning("Replication {} failed: {}", run.job.job.id, error.what());
  local_.store.run([&](kv::Transaction& tx) {
    jobs::fail(queue_, tx, run.job.attempt(), error.what(), {.retry = !is_final});
    if (is_final) record(tx, run, job, {.id = run.job.job.id, .reason = error.what()});
  });
}

// Writes the outcome into the document that has asked for the replication, if it is one.
void Replicator::record(kv::Transaction& tx, const Run& run, const ReplicationJob& job,
                        const ReplicationOutcome& outcome) {
  if (job.document.empty()) return;
  const auto ended = queue_.find(tx, kJobType, run.job.job.id);
  if (!ended || (ended->state != jobs::State::finished && ended->state != jobs::State::failed)) return;
  record_outcome(tx, local_.catalog, job, outcome, local_.clock.wall_ms());
}

// Reads only: a replication that waits writes nothing.
bool Replicator::must_end(const Run& run) {
  if (stopping_) return true;
  return local_.store.run([&](kv::Transaction& tx) {
    jobs::check_owned(tx, run.job.attempt());
    const auto job = queue_.find(tx, kJobType, run.job.job.id);
    return !job || job->cancel || job->resubmit;
  });
}

void Replicator::replicate(Run& run, const ReplicationJob& job) {
  const Replication& replication = job.replication;
  const auto attempt = run.job.attempt();
  const Fence fence = [&attempt](kv::Transaction& tx) { jobs::check_owned(tx, attempt); };
  const auto source = open(replication.source, replication, fence);
  const auto target = open(replication.target, replication, fence);
  {
    std::lock_guard lock(mutex_);
    run.source = source.get();
    run.target = target.get();
    if (stopping_) source->stop();
  }
  const absl::Cleanup forget = [&] {
    std::lock_guard lock(mutex_);
    run.source = run.target = nullptr;
  };
  Transfer transfer(*source, *target, replication, std::string(base_of(run.job.job.id)), local_.clock, rng_);
  transfer.begin();
  const auto report = [&] {
    local_.store.run([&](kv::Transaction& tx) {
      jobs::update(queue_, tx, attempt, std::nullopt, transfer.progress_json());
    });
  };
  std::string reported;
  Duration pause = kFirstPause;
  MonotonicTime waits_since{};
  for (auto report_at = local_.clock.now() + kProgressInterval;;) {
    bool is_more = true;
    while (is_more) {
      is_more = transfer.step();
      if (!is_more || local_.clock.now() < report_at) continue;
      report();
      if (must_end(run)) break;
      report_at = local_.clock.now() + kProgressInterval;
    }
    if (must_end(run)) break;
    if (!replication.continuous) break;
    transfer.write_checkpoint();
    const bool is_new = std::exchange(reported, transfer.sequence()) != transfer.sequence();
    if (is_new) report();
    // A source may say at once that there are changes, when there are none.
    const Duration waited = local_.clock.now() - waits_since;
    pause = is_new || waited > pause ? kFirstPause : std::min(2 * pause, kLongestPause);
    if (!is_new && waited < pause) sleep(run, pause - waited);
    waits_since = local_.clock.now();
    if (!source->wait_for_changes(transfer.sequence(), replication, kLongestWait)) break;
  }
  transfer.write_checkpoint();
  local_.store.run([&](kv::Transaction& tx) {
    if (stopping_) {
      jobs::release(queue_, tx, attempt);
    } else {
      jobs::finish(queue_, tx, attempt, std::nullopt, transfer.progress_json(), transfer.result_json());
      record(tx, run, job, {.id = run.job.job.id, .stats = transfer.stats_json()});
    }
  });
}

}  // namespace divan::replicator
