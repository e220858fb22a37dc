// The transactions of ken: they scan databases, request jobs and read the outcomes of jobs.
#include "divan/base/check.h"
#include "divan/base/log.h"
#include "divan/docs/purge.h"
#include "divan/docs/reader.h"
#include "divan/index/left_out.h"
#include "divan/index/small_build.h"
#include "divan/jobs/listing.h"
#include "divan/ken/ken.h"

namespace divan::ken {
namespace {

// A database with indexes that may not be built yet is scanned again after this time at the latest.
constexpr Duration kResubmit = std::chrono::seconds(60);
// The pause after a job that failed, if no failures of its index are recorded.
constexpr Duration kPause = std::chrono::seconds(5);
// An index that changes again within this time after a build is built by a job, which goes on until there are
// no more changes.
constexpr Duration kSmallBuildPause = std::chrono::milliseconds(5);
// The job of a large build becomes as urgent as those of small ones when it has waited for this time.
constexpr Duration kPatience = std::chrono::seconds(60);

bool is_in_queue(const jobs::Job& job) {
  return job.state == jobs::State::pending || job.state == jobs::State::running;
}

}  // namespace

// What to do about an index.
struct Ken::Decision {
  struct SmallBuild {
    docs::Database database;
    index::IndexPtr index;
  };
  IndexName index;
  std::optional<WaitReason> wait_reason;
  bool requested = false;                // its job
  std::optional<SmallBuild> small = {};  // instead of its job
  bool built = false;                    // by ken itself
  bool left_out = false;                 // it lacks rows of documents
  kv::Versionstamp sequence;             // of the database
  MonotonicTime again_at = MonotonicTime::max();
  std::optional<index::BuildFailures> failures;
  std::shared_ptr<kv::Watch> watch;
};

Ken::ScanResult Ken::scan_database(const std::string& name) {
  ScanResult result;
  try {
    // Jobs that have ended must not count as active.
    std::vector<Key> active;
    for (const auto& [key, row] : rows_) {
      if (row.active && row.index.database == name) active.push_back(key);
    }
    for (const auto& key : active) settle(key);
    std::vector<std::string> designs;
    store_.run([&](kv::Transaction& tx) {
      designs.clear();
      const auto database = catalog_.find(tx, name);
      result.gone = !database;
      if (!database) return;
      for (auto& [id, winner] : index::design_documents(tx, *database)) designs.push_back(std::move(id));
    });
    for (std::size_t i = designs.size(); i > 1; --i) std::swap(designs[i - 1], designs[rng_.below(i)]);
    for (const auto& id : designs) scan_design_document(result, name, id);
  } catch (const std::exception& error) {
    log::error("Ken cannot read `{}` and tries again in a few seconds: {}", name, error.what());
    result.error = error.what();
  }
  return result;
}

void Ken::scan_design_document(ScanResult& result, const std::string& name, const std::string& design_id) {
  std::vector<Decision> decisions;
  try {
    store_.run([&](kv::Transaction& tx) {
      decisions.clear();
      const auto database = catalog_.find(tx, name);
      if (!database) return;
      const auto tree = docs::read_tree(tx, *database, design_id, kv::Isolation::snapshot);
      if (tree.empty() || tree.front().deleted) return;
      std::int64_t requested = 0;
      for (const auto& index : index::indexes_of(tx, *database, kinds_, design_id, tree.front())) {
        decisions.push_back(decide(tx, *database, index, requested, true));
        if (decisions.back().requested) ++requested;
      }
    });
  } catch (const std::exception& error) {
    // The other design documents are scanned nevertheless.
    log::error("Ken cannot read `{}` in `{}` and tries again in a few seconds: {}", design_id, name,
               error.what());
    result.error = error.what();
    return;
  }
  // First those whose jobs hold channels now.
  for (auto& decision : decisions) {
    if (!decision.small) record(result, decision);
  }
  for (auto& decision : decisions) {
    if (!decision.small) continue;
    try {
      build_or_request(decision);
    } catch (const std::exception& error) {
      log::error("Ken cannot build or request `{}` in `{}` and tries again in a few seconds: {}", design_id,
                 name, error.what());
      result.error = error.what();
    }
    record(result, decision);
  }
}

// Decides what to do about an index, and requests its job if it may be built. `requested` is how many jobs
// this transaction has requested. With `may_be_small`, it may decide for a small build instead of the job.
Ken::Decision Ken::decide(kv::Transaction& tx, const docs::Database& database,
                          const index::IndexPtr& definition, std::int64_t requested, bool may_be_small) {
  const index::Index& index = *definition;
  Decision decision{.index = {std::string(index.kind()), index::build_id(database, index.signature()),
                              database.name(), index.design_document(), index.signature()}};
  const index::IndexKeys keys(database, index.signature());
  if (tx.is_remote()) {
    kv::Prefetch reads;
    for (const auto& key : {keys.state(), index::left_out_documents_key(keys)}) reads.key(key);
    tx.prefetch(reads);
  }
  decision.left_out = index::lacks_rows(tx, keys);
  if (!index.automatic()) return decision;
  const auto built = index::read_sequence(tx, keys, kv::Isolation::snapshot);
  const auto info = docs::read_info(tx, database);
  decision.sequence = info.update_seq;
  if (built >= info.update_seq) return decision;
  const auto job = queue_.find(tx, decision.index.type, decision.index.job);
  const auto found = rows_.find({decision.index.type, decision.index.job});
  const Row* row = found == rows_.end() ? nullptr : &found->second;
  const MonotonicTime now = clock_.now();
  if (job && is_in_queue(*job)) {
    // The job was requested elsewhere: ken does not watch it, and it may fail.
    if (row == nullptr || !row->active) decision.again_at = now + kResubmit;
    return decision;
  }

  if (row != nullptr && row->active) {  // it has ended since scan_database() settled it
    decision.again_at = now;
    return decision;
  }
  decision.failures = index::read_failures(tx, keys);
  if (decision.failures) {
    const MonotonicTime at = retry_time({decision.index.type, decision.index.job}, *decision.failures, now);
    if (at > now) {
      decision.again_at = at;
      decision.wait_reason = WaitReason::failed;
      return decision;
    }
  }
  Candidate candidate;
  candidate.behind = built == kv::Versionstamp()
                         ? std::min(settings_.max_incremental_updates, info.doc_count + info.doc_del_count)
                         : docs::count_index_changes(tx, database, built, settings_.max_incremental_updates);
  if (row != nullptr && !decision.failures) {
    candidate.known = true;
    candidate.moved = docs::count_index_changes(tx, database, row->sequence, settings_.batch_size);
    candidate.idle = now - row->since;
  }
  decision.wait_reason =
      why_to_wait(settings_, active() + requested, active_of(database.name()) + requested, candidate);
  if (decision.wait_reason) {
    decision.again_at = now + kResubmit;
    // The delay must have been exceeded.
    if (decision.wait_reason == WaitReason::delay)
      decision.again_at =
          std::min(decision.again_at, row->since + settings_.delay + std::chrono::milliseconds(1));
    return decision;
  }
  const bool is_quiet = row == nullptr || now - row->since >= kSmallBuildPause;
  if (may_be_small && is_quiet && !decision.failures && index.allows_small_builds() &&
      built != kv::Versionstamp() && candidate.behind <= index::kMaxSmallBuild) {
    decision.small = {database, definition};
    return decision;
  }
  DIVAN_CHECK(active() + requested < settings_.channels(),
              "a build is requested although all {} channels are in use", settings_.channels());
  decision.again_at = MonotonicTime::max();
  decision.requested = true;
  index::request_build(
      queue_, tx, database, index,
      candidate.behind < settings_.max_incremental_updates ? index::kCatchUpPriority : index::kBuildPriority,
      options_.builder);
  decision.watch = queue_.watch(tx, decision.index.type, decision.index.job);
  return decision;
}

// Tries the small build that was decided for; if it fails, decides again, for the job.
void Ken::build_or_request(Decision& decision) {
  const auto small = *decision.small;
  decision.built = index::try_small_build(store_, catalog_, small.database, *small.index);
  store_.run([&](kv::Transaction& tx) {
    if (decision.built) {
      decision.left_out = index::lacks_rows(tx, {small.database, small.index->signature()});
      return;
    }
    const auto database = catalog_.find(tx, small.database.name());
    if (database && database->number() == small.database.number())
      decision = decide(tx, *database, small.index, 0, false);
  });
}

// Takes over a decision whose transaction has been committed.
void Ken::record(ScanResult& result, Decision& decision) {
  result.again_at = std::min(result.again_at, decision.again_at);
  if (decision.left_out) result.left_out.push_back(decision.index);
  if (decision.wait_reason) {
    result.wait_reasons.insert(*decision.wait_reason);
    result.waiting.push_back({decision.index, *decision.wait_reason, decision.failures});
  }
  if (!decision.requested && !decision.built) return;
  const Key key{decision.index.type, decision.index.job};
  {
    std::lock_guard lock(mutex_);
    Row& row = rows_[key];
    row.index = decision.index;
    row.active = decision.requested;
    row.since = clock_.now();
    row.requested_at = clock_.wall_ms();
    row.sequence = decision.sequence;
  }
  watch(key, std::move(decision.watch));
}

void Ken::watch(const Key& key, std::shared_ptr<kv::Watch> watch) {
  if (!watch) return;
  watch->on_end([notifier = loop_.notifier()] { notifier->notify(); });
  std::lock_guard lock(mutex_);
  const auto row = rows_.find(key);
  if (row != rows_.end()) row->second.watch = std::move(watch);
}

// Returns when the next build may begin, at `now` at the earliest. If the failure is in the future by this
// process's clock (another process's clock is ahead, or this one was set back), the pause begins when the
// failure is first seen.
MonotonicTime Ken::retry_time(const Key& key, const index::BuildFailures& failures, MonotonicTime now) {
  using std::chrono::milliseconds;
  const std::int64_t pause = failures.retry_at() - failures.last_at;
  const std::int64_t left = failures.retry_at() - clock_.wall_ms();
  if (left <= pause) {
    early_failures_.erase(key);
    return now + milliseconds(std::max<std::int64_t>(left, 0));
  }
  const auto seen = early_failures_.try_emplace(key, EarlyFailure{failures.last_at, now}).first;
  if (seen->second.last_at != failures.last_at) seen->second = {failures.last_at, now};
  return seen->second.at + milliseconds(pause);
}

std::optional<index::IndexKeys> Ken::find_keys(kv::Transaction& tx, const IndexName& index) {
  const auto database = catalog_.find(tx, index.database);
  if (!database) return std::nullopt;
  return index::IndexKeys(*database, index.signature);
}

// Checks whether an active job has ended, and handles its result.
void Ken::settle(const Key& key) {
  const auto found = rows_.find(key);
  if (found == rows_.end() || !found->second.active) return;
  Row& row = found->second;
  const bool is_old = clock_.now() - row.since > kPatience;
  std::optional<jobs::Job> job;
  std::optional<index::BuildFailures> failures;
  bool left_out = false;
  std::shared_ptr<kv::Watch> watch;
  store_.run([&](kv::Transaction& tx) {
    watch.reset();
    failures.reset();
    left_out = false;
    job = queue_.find(tx, key.first, key.second);
    if (!job || !is_in_queue(*job)) {
      const auto keys = find_keys(tx, row.index);
      if (!keys) return;
      if (job && job->state == jobs::State::failed) failures = index::read_failures(tx, *keys);
      left_out = index::lacks_rows(tx, *keys);
      return;
    }
    if (is_old && job->state == jobs::State::pending && job->priority > index::kCatchUpPriority)
      queue_.add(tx, key.first, key.second, queue_.data(tx, *job), {.priority = index::kOverduePriority});
    watch = queue_.watch(tx, key.first, key.second);
  });
  if (job && is_in_queue(*job)) return this->watch(key, std::move(watch));

  std::lock_guard lock(mutex_);
  row.active = false;
  row.since = clock_.now();
  row.watch.reset();
  record_left_out(row.index, left_out);
  if (job && job->state == jobs::State::failed) {
    const MonotonicTime at = failures ? retry_time(key, *failures, row.since) : row.since + kPause;
    const auto [retry, is_new] = retries_.try_emplace(row.index.database, Retry{at, row.since, {}, {}});
    retry->second.at = std::min(retry->second.at, at);
    retry->second.wait_reasons.insert(WaitReason::failed);
    auto& waiting = waiting_indexes_[row.index.database];
    std::erase_if(waiting, [&](const auto& other) { return other.index.job == row.index.job; });
    waiting.push_back({row.index, WaitReason::failed, std::move(failures)});
  }
  give_channel(row.index.database);
}

// A job of this database has freed a channel. Queues the database that has waited longest for a channel, and
// this one if it waits because of its own limit. Needs mutex_.
void Ken::give_channel(const std::string& database) {
  const std::int64_t active = this->active();
  const auto waits_for_channel = [&](const Retry& retry) {
    return (retry.wait_reasons.contains(WaitReason::batch_channels) && active < settings_.batch_channels) ||
           (retry.wait_reasons.contains(WaitReason::channels) && active < settings_.channels());
  };
  const std::string* longest = nullptr;
  MonotonicTime since = MonotonicTime::max();
  for (const auto& [name, retry] : retries_) {
    if (queued_.contains(name) || retry.since >= since || !waits_for_channel(retry)) continue;
    longest = &name;
    since = retry.since;
  }
  if (longest != nullptr) put_in_queue(*longest);
  const auto own = retries_.find(database);
  if (own != retries_.end() && own->second.wait_reasons.contains(WaitReason::limit)) put_in_queue(database);
}

void Ken::remove_jobs(const std::string& database, bool keep_new) {
  std::string kept;  // the end of the ids of jobs that are not removed
  const auto is_removed = [&](std::string_view id) {
    return index::database_of_build(id) == database && (kept.empty() || !id.ends_with(kept));
  };
  store_.run([&](kv::Transaction& tx) {
    const auto present = keep_new ? catalog_.find(tx, database) : std::nullopt;
    kept = present ? index::build_id(*present, "") : "";
    std::set<Key> keys;
    for (const auto& [key, row] : rows_) {
      if (is_removed(key.second)) keys.insert(key);
    }
    // These may have been requested elsewhere.
    for (const auto& kind : kinds_) {
      for (const auto& job :
           jobs::list_jobs(queue_, tx, kind->name(), {.state = jobs::State::running, .limit = SIZE_MAX})
               .jobs) {
        if (is_removed(job.id)) keys.insert({job.type, job.id});
      }
    }
    for (const auto& [type, id] : keys) {
      if (queue_.find(tx, type, id)) queue_.remove(tx, type, id);
    }
  });
  std::lock_guard lock(mutex_);
  std::erase_if(rows_, [&](const auto& entry) { return is_removed(entry.first.second); });
  std::erase_if(early_failures_, [&](const auto& entry) { return is_removed(entry.first.second); });
  retries_.erase(database);
  waiting_indexes_.erase(database);
  give_channel(database);
}

}  // namespace divan::ken
