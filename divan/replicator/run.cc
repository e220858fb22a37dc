#include "divan/replicator/run.h"

#include "divan/base/log.h"

namespace divan::replicator {
namespace {

// How often the progress of a replication is recorded.
constexpr Duration kReportInterval = std::chrono::seconds(1);
// Pauses of a replication that its source has woken without changes: they double until it waits for the
// longest.
constexpr Duration kFirstPause = std::chrono::milliseconds(50);
constexpr Duration kLongestPause = std::chrono::seconds(5);
// Before the next attempt, if the end of this one cannot be recorded.
constexpr Duration kReleaseDelay = std::chrono::seconds(30);

// Errors that a retry cannot resolve. Those of another server, or of a gateway before it, may be temporary.
bool is_permanent(const Error& error) {
  if (dynamic_cast<const ServerError*>(&error) != nullptr) return false;
  const int status = error.status();
  const bool may_change = status == 401 || status == 403 || status == 404 || status == 408 || status == 409 ||
                          status == 412 || status == 429;
  return status == 501 || (status >= 400 && status < 500 && !may_change);
}

}  // namespace

Run::Run(const RunContext& context, jobs::AcceptedJob job, const RemoteOptions& remote,
         std::function<void()> wake)
    : context_(context),
      job_(std::move(job)),
      attempt_(job_.attempt()),
      remote_(remote),
      wake_(std::move(wake)),
      pause_(kFirstPause) {
  try {
    request_ = ReplicationJob::parse(job_.data);
  } catch (const Error& error) { invalid_ = error; }
}

std::string Run::group() const {
  return (job_.job.failures > 0 ? "retries " : "first attempts ") + request_.database;
}

Run::Turn Run::work(MonotonicTime end) {
  try {
    try {
      if (invalid_) throw Error(*invalid_);
      return work_on(end);
    } catch (const jobs::LockLost&) { throw; } catch (const std::exception& error) {
      fail(error);
    }
  } catch (const jobs::LockLost&) {
    log::info("Replication {} runs elsewhere, or is no longer needed.", job_.job.id);
  } catch (const std::exception& error) {
    log::error("Replication {}: {}", job_.job.id, error.what());
    release();
  }
  return {};
}

// For the case that not even a failure can be recorded.
void Run::release() {
  try {
    context_.local.store.run(
        [&](kv::Transaction& tx) { jobs::release(context_.queue, tx, attempt_, kReleaseDelay); });
  } catch (const jobs::LockLost&) { return; } catch (const std::exception&) {
    context_.acceptor.release_undelivered({&job_, 1});
  }
}

std::unique_ptr<Peer> Run::open(const Endpoint& endpoint) {
  const Fence fence = [this](kv::Transaction& tx) { jobs::check_owned(tx, attempt_); };
  if (!endpoint.is_remote())
    return open_local(context_.local, endpoint.database, request_.replication.user, fence);
  auto options = remote_;
  options.http.proxy = endpoint.proxy;
  // The server's certificate is for replications of its administrators.
  if (!request_.database.empty() && request_.database != kReplicatorDatabase)
    options.http.certificate_file.clear();
  return context_.connect(endpoint, options, interrupted_);
}

void Run::begin() {
  const auto& replication = request_.replication;
  source_ = open(replication.source);
  target_ = open(replication.target);
  transfer_.emplace(*source_, *target_, replication, std::string(base_of(job_.job.id)), context_.local.clock,
                    context_.rng);
  transfer_->begin();
  report_at_ = now() + kReportInterval;
}

Run::Turn Run::work_on(MonotonicTime end) {
  if (!transfer_ && !interrupted_) begin();
  source_watch_.reset();
  target_watch_.reset();
  for (bool is_more = true; is_more && !interrupted_;) {
    is_more = transfer_->step();
    if (now() >= report_at_) report();
    if (is_more && now() >= end) return {State::ready, {}};
  }
  if (!interrupted_ && request_.replication.continuous) return wait();
  this->end();
  return {};
}

// Makes no transaction that writes.
Run::Turn Run::wait() {
  const auto& sequence = transfer_->sequence();
  const auto checked = transfer_->session().missing_checked;
  const bool has_changes = std::exchange(checked_, checked) != checked;
  const bool has_watched = std::exchange(is_watching_, false);
  if (has_changes || now() >= early_until_) {
    pause_ = kFirstPause;
  } else if (has_watched) {
    return {State::waits, now() + std::exchange(pause_, std::min(2 * pause_, kLongestPause))};
  }
  MonotonicTime wake_at = MonotonicTime::max();
  if (reported_ != sequence) wake_at = std::min(wake_at, report_at_);
  if (request_.replication.use_checkpoints && transfer_->checkpointed_sequence() != sequence)
    wake_at = std::min(wake_at, transfer_->checkpoint_due());
  source_watch_ = source_->watch_changes(sequence, request_.replication, wake_);
  target_watch_ = target_->watch_deletion(wake_);
  is_watching_ = true;
  if (const auto interval = source_watch_->poll_interval(); interval != Duration::max())
    wake_at = std::min(wake_at, now() + interval);
  early_until_ = std::min(wake_at, now() + kLongestPause);
  return {State::waits, wake_at};
}

void Run::report() {
  report_at_ = now() + kReportInterval;
  if (std::exchange(reported_, transfer_->sequence()) == transfer_->sequence()) return;
  const auto asked = context_.local.store.run([&](kv::Transaction& tx) {
    return jobs::update(context_.queue, tx, attempt_, std::nullopt, transfer_->progress_json());
  });
  if (asked.cancel || asked.resubmit) interrupt();
}

// If it was interrupted, and the job is neither to be cancelled nor run again, it is released.
void Run::end() {
  if (transfer_) transfer_->write_checkpoint();
  context_.local.store.run([&](kv::Transaction& tx) {
    const auto job = context_.queue.find(tx, kJobType, job_.job.id);
    const bool is_asked = job && (job->cancel || job->resubmit);
    if (interrupted_ && !is_asked) return jobs::release(context_.queue, tx, attempt_);
    if (!transfer_) return jobs::finish(context_.queue, tx, attempt_);
    jobs::finish(context_.queue, tx, attempt_, std::nullopt, transfer_->progress_json(),
                 transfer_->result_json());
    record(tx, {.id = job_.job.id, .stats = transfer_->stats_json()});
  });
}

// After an interruption, errors are a consequence of it.
void Run::fail(const std::exception& error) {
  const auto* const known = dynamic_cast<const Error*>(&error);
  const bool is_final = known != nullptr && is_permanent(*known);
  if (!interrupted_) log::warning("Replication {} failed: {}", job_.job.id, error.what());
  context_.local.store.run([&](kv::Transaction& tx) {
    if (interrupted_) return jobs::release(context_.queue, tx, attempt_);
    jobs::fail(context_.queue, tx, attempt_, error.what(), {.retry = !is_final});
    if (is_final) record(tx, {.id = job_.job.id, .reason = error.what()});
  });
}

// Writes the outcome into the document that has asked for the replication, if it is one and has ended.
void Run::record(kv::Transaction& tx, const ReplicationOutcome& outcome) {
  if (request_.document.empty()) return;
  const auto ended = context_.queue.find(tx, kJobType, job_.job.id);
  if (!ended || (ended->state != jobs::State::finished && ended->state != jobs::State::failed)) return;
  record_outcome(tx, context_.local.catalog, request_, outcome, context_.local.clock.wall_ms());
}

}  // namespace divan::replicator
