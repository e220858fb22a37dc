#include "divan/kv/embedded/committer.h"

#include <absl/container/flat_hash_map.h>
#include <pthread.h>
#include <rocksdb/perf_level.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/base/log.h"
#include "divan/kv/clock_version.h"
#include "divan/kv/embedded/group_batch.h"
#include "divan/kv/stamping.h"

namespace divan::kv::embedded {
namespace {

// Bounds of a group: its memory, and the two bytes of a transaction's position in it.
constexpr std::size_t kMaxGroupBytes = 32 << 20;
constexpr std::size_t kMaxGroupCommits = 4096;

// A cleared range of up to this many keys becomes single deletions: each range deletion makes all later reads
// of its memtable slower.
constexpr std::size_t kMaxSingleDeletions = 64;

// After a smaller group than this, the leader does not yield: a context switch costs more than a small group.
constexpr std::size_t kMinGroupToYield = 8;

// Transactions live kTransactionLifetime; the extra second is for those that are being queued.
constexpr Duration kConflictWindow = kTransactionLifetime + std::chrono::seconds(1);

// More than the version of any store: versions of restored backups are at most 2^60.
constexpr Version kMaxStoredVersion = Version{1} << 62;

// A minute: clocks are adjusted by seconds all the time.
constexpr Version kMaxVersionLead = 60'000'000;

// A caller with nothing else to do writes its group itself if the last one took less: it would wait as long
// to be woken, and what arrives meanwhile is not delayed noticeably.
constexpr Duration kQuickWrite = std::chrono::milliseconds(1);

// Number of threads that lead if nobody else does: one may fire watches, which can take a while, when the
// next group is to be written.
constexpr std::size_t kThreads = 2;

// Whether this thread runs callbacks of commits. If one of them waited for a commit, nobody would lead.
thread_local bool ends_commits = false;

Version stored_version(rocksdb::DB& db) {
  std::string value;
  const auto status = db.Get(rocksdb::ReadOptions(), slice(kVersionKey), &value);
  if (status.IsNotFound()) return 0;
  check_status(status);
  const auto version = value.size() == 8 ? static_cast<Version>(read_u64(value)) : -1;
  if (version < 0 || version > kMaxStoredVersion)
    throw Error(ErrorCode::io_error, "The stored version is damaged.");
  return version;
}

// The store may have assigned later versions than its files show: an old copy was put back, or the power
// failed before commits that were not synced reached the disk.
Version first_version(rocksdb::DB& db, const Clock& clock) {
  const Version stored = stored_version(db);
  const Version now = version_of_clock(clock.wall_ms());
  if (stored - now > kMaxVersionLead) {
    log::warning(
        "The store's versions are {} minutes ahead of the system clock, which is wrong or was set back. "
        "Until it has caught up, versions, epochs and sequences may repeat if an older copy of the data "
        "directory is put back.",
        (stored - now) / 60'000'000);
  }
  return std::max(stored, now);
}

}  // namespace

// What a group is about to write.
struct Committer::GroupWrite {
  GroupBatch batch;
  Version version;
  std::shared_ptr<const Snapshot> before;
  std::shared_ptr<const Snapshot> after;  // if anything was written
  // The present values of keys with atomic operations in this group. Each operation applies to what was
  // written before it, also in the same group.
  struct Value {
    bool known = false;  // otherwise it is the value in `before`
    std::optional<std::string> bytes;
  };
  absl::flat_hash_map<std::string, Value> atomic_values;
  // For watches; empty if there are none.
  bool collect_keys = false;
  std::vector<std::string> keys;
  std::vector<KeyRange> ranges;
};

Committer::Committer(rocksdb::DB& db, const Clock& clock, const CommitterOptions& options)
    : db_(db),
      clock_(clock),
      options_(options),
      empty_ranges_(options.least_passed),
      watches_(options.max_watches) {
  publish(first_version(db_, clock));
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads_.emplace_back([this] { work(); });
    pthread_setname_np(threads_.back().native_handle(), "commit");
  }
}

Committer::~Committer() {
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
    idle_.wait(lock, [this] { return !led_ && firing_ == 0 && queue_.empty(); });
  }
  for (auto& thread : threads_) thread.join();
  watches_.cancel_all();
}

void Committer::add(const std::shared_ptr<CommitRequest>& request) {
  if (stopping_) throw Error(ErrorCode::transaction_cancelled);
  queue_.push_back(request);
}

void Committer::start(const std::shared_ptr<CommitRequest>& request) {
  DIVAN_CHECK(request->done, "nobody learns how a commit ended");
  std::lock_guard lock(mutex_);
  add(request);
  if (!led_) wake_.notify_one();
}

bool Committer::commits_quickly() const {
  std::lock_guard lock(mutex_);
  return !led_ && queue_.empty() && waiting_ > 0 && last_write_ < kQuickWrite;
}

void Committer::commit(const std::shared_ptr<CommitRequest>& request) {
  DIVAN_CHECK(!ends_commits, "a callback of a commit commits");
  std::unique_lock lock(mutex_);
  add(request);
  while (!led_) {
    // The group contains the request, unless too many were queued before.
    lead(lock, false);
    if (!request->ended.try_acquire()) continue;
    // Whoever leads must not do so for others only, unless nobody else does.
    if (queue_.empty() || waiting_ > 0) return;
    request->ended.release();
  }
  lock.unlock();
  request->ended.acquire();
}

// The threads' function: leads whenever there are commits and nobody else does.
void Committer::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (led_ || (queue_.empty() && !stopping_)) {
      ++waiting_;
      wake_.wait(lock);
      --waiting_;
    }
    if (queue_.empty()) return wake_.notify_one();  // the store closes: the next thread ends, too
    lead(lock, true);
  }
}

void Committer::lead(std::unique_lock<Mutex>& lock, bool goes_on) noexcept {
  led_ = true;
  lock.unlock();
  // RocksDB would count each comparison of keys for this thread.
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
  // The members of a large group return at about the same time: the first one waits for the others.
  if (last_group_ >= kMinGroupToYield) std::this_thread::yield();
  std::vector<std::string> watched;
  std::shared_ptr<const Snapshot> written;
  Duration took;
  {
    const Group group = next_group();
    const MonotonicTime begun = clock_.now();
    const GroupWrite write = commit_group(group, begun);
    took = clock_.now() - begun;
    ends_commits = true;
    for (const auto& request : group) {
      DIVAN_CHECK(request->error || request->version == write.version,
                  "a commit of version {} in a group of {}", request->version, write.version);
      request->done ? request->done() : request->ended.release();
    }
    ends_commits = false;
    watched = watched_keys(write);
    if (!watched.empty()) written = write.after;
  }
  lock.lock();
  led_ = false;
  last_write_ = took;
  ++firing_;
  // Nobody is woken in vain if this thread writes the next group at once.
  if (stopping_ || (!queue_.empty() && (!goes_on || !watched.empty()))) wake_.notify_one();
  if (!watched.empty()) {
    lock.unlock();
    watches_.check(watched, *written);
    written.reset();
    lock.lock();
  }
  DIVAN_CHECK(firing_ > 0, "watches were fired by a thread that was not counted");
  if (--firing_ == 0) idle_.notify_all();
}

std::shared_ptr<const Snapshot> Committer::latest() const {
  std::lock_guard lock(snapshot_mutex_);
  return latest_;
}

CommitStats Committer::stats() const { return {groups_, commits_, conflicts_, conflict_entries_}; }

Committer::Group Committer::next_group() {
  std::lock_guard lock(mutex_);
  Group group;
  std::size_t bytes = 0;
  while (!queue_.empty() && group.size() < kMaxGroupCommits && bytes < kMaxGroupBytes) {
    bytes += queue_.front()->writes.bytes();
    group.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  last_group_ = group.size();
  return group;
}

void Committer::forget_conflicts(MonotonicTime now) {
  std::optional<Version> forgotten;
  const auto forget_oldest = [&] {
    forgotten = recent_groups_.front().second;
    recent_groups_.pop_front();
  };
  while (!recent_groups_.empty() && now - recent_groups_.front().first > kConflictWindow) forget_oldest();
  const bool too_many = conflict_set_.bytes() > options_.max_conflict_bytes;
  if (too_many) {
    for (std::size_t half = recent_groups_.size() / 2; half > 0; --half) forget_oldest();
  }
  if (forgotten) conflict_set_.forget_before(*forgotten + 1, too_many);
}

Committer::GroupWrite Committer::commit_group(const Group& group, MonotonicTime now) {
  forget_conflicts(now);

  GroupWrite write;
  write.before = latest();
  write.version = write.before->version() + 1;
  for (const auto& request : group) write.version = std::max(write.version, request->version_at_least);
  DIVAN_CHECK(write.version > write.before->version(), "version {} follows {}", write.version,
              write.before->version());
  write.collect_keys = !watches_.empty();
  std::uint16_t order = 0;
  std::size_t committed = 0;
  try {
    if (failure_) throw *failure_;
    empty_ranges_.begin_group(conflict_set_);
    prefetch_atomics(group, write);
    for (const auto& request : group) {
      DIVAN_CHECK(request->read_version <= write.before->version(), "a read of version {} after version {}",
                  request->read_version, write.before->version());
      // It was young enough when it was queued, but the machine or this thread was suspended since.
      if (!request->read_conflicts.empty() && !conflict_set_.remembers_since(request->read_version)) {
        request->error = Error(ErrorCode::transaction_too_old);
        continue;
      }
      if (conflicts(*request)) {
        request->error = Error(ErrorCode::not_committed);
        ++conflicts_;
        continue;
      }
      ClearedKeys cleared;
      try {
        cleared = read_for(*request, write);
      } catch (const Error& error) {
        request->error = error;
        continue;
      }
      DIVAN_CHECK(order < kMaxGroupCommits, "commit {} of a group", order);
      request->version = write.version;
      request->order = order++;
      apply(*request, cleared, write);
      ++committed;
    }
    if (committed > 0) {
      std::string version;
      append_u64(version, static_cast<std::uint64_t>(write.version));
      write.batch.set(kVersionKey, version);
      rocksdb::WriteBatch batch;
      check_status(write.batch.append_to(batch));
      rocksdb::WriteOptions options;
      options.sync = options_.durable;
      check_status(db_.Write(options, &batch));
      DIVAN_CHECK(recent_groups_.empty() || recent_groups_.back().second < write.version,
                  "version {} follows {}", write.version, recent_groups_.back().second);
      recent_groups_.emplace_back(now, write.version);
      write.after = publish(write.version);
      ++groups_;
      commits_ += committed;
    }
  } catch (const Error& error) {
    // RocksDB accepts no writes after a failed one. Only a restart shows whether this group reached the disk.
    if (!failure_) log::error("The store accepts no more writes: {}", error.reason());
    failure_ = error;
    for (const auto& request : group) {
      if (!request->error) request->error = error;
    }
  }
  conflict_entries_ = conflict_set_.size();
  return write;
}

// The keys with watches that the group has written.
std::vector<std::string> Committer::watched_keys(const GroupWrite& write) const {
  if (!write.after) return {};
  if (write.collect_keys) return watches_.watched(write.keys, write.ranges);
  if (watches_.empty()) return {};
  // These were set while this group was written, by transactions that read the version before. The group's
  // keys were not collected, so all watches are checked; there are few of them.
  return watches_.watched({}, {{std::string(), std::string(kVersionKey)}});
}

bool Committer::conflicts(const CommitRequest& request) const {
  return std::any_of(request.read_conflicts.begin(), request.read_conflicts.end(),
                     [&](const KeyRange& range) {
                       return conflict_set_.changed_since(range.begin, range.end, request.read_version);
                     });
}

void Committer::prefetch_atomics(const Group& group, GroupWrite& write) {
  for (const auto& request : group) {
    if (!request->writes.has_atomics()) continue;
    for (const auto& [key, point] : request->writes.points()) {
      if (point.kind == PointWrite::Kind::atomic) write.atomic_values.try_emplace(key);
    }
  }
}

// Reads what applying the request needs: if that fails, nothing of it has been written yet.
Committer::ClearedKeys Committer::read_for(const CommitRequest& request, GroupWrite& write) const {
  if (request.writes.has_atomics()) {
    for (const auto& [key, point] : request.writes.points()) {
      if (point.kind != PointWrite::Kind::atomic) continue;
      auto& value = write.atomic_values.at(key);
      if (!value.known) value = {true, write.before->get(key)};
    }
  }
  ClearedKeys found;
  for (const auto& [begin, end] : request.writes.cleared()) found.push_back(keys_in(begin, end, write));
  return found;
}

// The keys in a range; nullopt if they are many or not known.
std::optional<std::vector<std::string>> Committer::keys_in(const std::string& begin, const std::string& end,
                                                           const GroupWrite& write) const {
  // Keys that an earlier member of this group wrote are not in the snapshot.
  if (conflict_set_.changed_since(begin, end, write.version - 1)) return std::nullopt;
  const rocksdb::Slice lower(begin), upper(end);
  const auto rows = write.before->iterate(&lower, &upper);
  std::vector<std::string> keys;
  for (rows->SeekToFirst(); rows->Valid() && keys.size() <= kMaxSingleDeletions; rows->Next()) {
    keys.push_back(rows->key().ToString());
  }
  check_status(rows->status());
  if (keys.size() > kMaxSingleDeletions) return std::nullopt;
  return keys;
}

void Committer::apply(const CommitRequest& request, const ClearedKeys& cleared, GroupWrite& write) {
  // The key and the value are in the request or kept by the batch.
  const auto wrote = [&](std::string_view key, std::optional<std::string_view> value) {
    DIVAN_CHECK(key.size() <= kMaxKeyBytes && !key.starts_with('\xff'), "a key of {} bytes is written",
                key.size());
    if (value) {
      empty_ranges_.row_written(key);
      write.batch.set(key, *value);
    } else {
      write.batch.clear(key);
    }
    conflict_set_.add_point(key, write.version);
    if (!write.atomic_values.empty()) {
      const auto counted = write.atomic_values.find(absl::string_view(key.data(), key.size()));
      if (counted != write.atomic_values.end()) counted->second = {true, std::optional<std::string>(value)};
    }
    if (write.collect_keys) write.keys.emplace_back(key);
  };
  const auto wrote_computed = [&](std::string_view key, std::optional<std::string> value) {
    value ? wrote(key, write.batch.keep(*std::move(value))) : wrote(key, std::nullopt);
  };
  const std::string stamp = versionstamp_bytes(write.version, request.order);

  std::size_t number = 0;
  for (const auto& [begin, end] : request.writes.cleared()) {
    DIVAN_CHECK(begin < end && number < cleared.size(), "range {} of {} is cleared", number, cleared.size());
    if (const auto& keys = cleared[number++]) {
      for (const auto& key : *keys) write.batch.clear(write.batch.keep(key));
    } else {
      write.batch.clear_range(begin, end);
    }
    conflict_set_.add_range(begin, end, write.version);
    if (write.collect_keys) write.ranges.push_back({begin, end});
    for (auto& [key, value] : write.atomic_values) {
      if (key >= begin && key < end) value = {true, std::nullopt};
    }
  }
  for (const auto& [key, point] : request.writes.points()) {
    switch (point.kind) {
      case PointWrite::Kind::clear: wrote(key, std::nullopt); break;
      case PointWrite::Kind::set: wrote(key, point.value); break;
      case PointWrite::Kind::stamped_value: {
        std::optional<std::string> value = stamped(point.value, point.stamp_offset, stamp);
        for (const auto& operation : point.operations) {
          value = apply_atomic(operation.op, value, operation.operand);
        }
        wrote_computed(key, std::move(value));
        break;
      }
      case PointWrite::Kind::atomic: {
        const auto& before = write.atomic_values.at(key);
        DIVAN_CHECK(before.known, "an atomic operation on a value that was not read");
        wrote_computed(key, value_after(point, before.bytes));
        break;
      }
    }
  }
  for (const auto& write_at : request.writes.stamped_keys()) {
    const std::string_view key = write.batch.keep(stamped(write_at.key, write_at.stamp_offset, stamp));
    const auto clears = [&](const KeyRange& range) { return range.contains(key); };
    if (std::any_of(write_at.cleared.begin(), write_at.cleared.end(), clears)) continue;
    wrote(key, write_at.value);
  }
  for (const auto& range : request.write_conflicts) {
    conflict_set_.add_range(range.begin, range.end, write.version);
  }
}

std::shared_ptr<const Snapshot> Committer::publish(Version version) {
  const auto snapshot = std::make_shared<const Snapshot>(db_, version, empty_ranges_);
  auto before = snapshot;  // freed without the lock
  std::lock_guard lock(snapshot_mutex_);
  DIVAN_CHECK(!latest_ || latest_->version() < version, "version {} follows {}", version, latest_->version());
  empty_ranges_.end_group(version);
  latest_.swap(before);
  return snapshot;
}

}  // namespace divan::kv::embedded
