// Commits, one group at a time.
//
// Commits are queued while the previous group is written. The thread that writes a group, its leader, takes
// the queued commits, checks each against what was written since its transaction began (also by earlier
// members of the group), assigns the group one version, writes the commits that passed as one RocksDB batch
// with one sync of the log, publishes the new snapshot, and only then ends the commits of the group. Watches
// fire after that. So a transaction is durable before it is acknowledged, and concurrent commits share a
// sync.
//
// A thread that blocks in commit() leads if nobody does: two context switches would cost more than everything
// except the disk. All other groups are written by the committer's own threads, so callers of start() never
// wait for a sync. commits_quickly() helps a caller that has the choice.
#pragma once

#include <rocksdb/db.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "divan/base/mutex.h"
#include "divan/kv/embedded/conflict_set.h"
#include "divan/kv/embedded/empty_ranges.h"
#include "divan/kv/embedded/watch_table.h"
#include "divan/kv/embedded/write_map.h"

namespace divan::kv::embedded {

/// A commit on its way through the committer.
struct CommitRequest {
  Version read_version = 0;
  std::vector<KeyRange> read_conflicts;   // an empty `end`: the one key `begin`
  std::vector<KeyRange> write_conflicts;  // beyond those that `writes` make
  WriteMap writes;
  Version version_at_least = 0;
  std::vector<WatchRequest> watches;

  // The outcome, once commit() has returned or `done` was called.
  std::optional<Error> error;
  Version version = -1;
  std::uint16_t order = 0;  // position in the group: the last two bytes of the versionstamp

  // What happens when the outcome is known: start()'s caller sets `done`, commit() waits for `ended`.
  std::function<void()> done;
  std::binary_semaphore ended{0};
};

/// Counters of a store since it was opened, for metrics and benchmarks.
struct CommitStats {
  std::uint64_t groups = 0;  // each one write of the log
  std::uint64_t commits = 0;
  std::uint64_t conflicts = 0;
  std::uint64_t conflict_entries = 0;
};

/// As in Options.
struct CommitterOptions {
  bool durable;
  std::size_t max_watches;
  std::size_t max_conflict_bytes;
  std::size_t least_passed;
};

/// Thread-safe.
class Committer {
 public:
  /// Versions continue from the stored one, or from the clock's if that is greater (clock_version.h).
  Committer(rocksdb::DB& db, const Clock& clock, const CommitterOptions& options);
  ~Committer();
  Committer(const Committer&) = delete;
  Committer& operator=(const Committer&) = delete;

  /// Blocks until the request's outcome is known. The watches that its writes fire may be fired on this
  /// thread.
  void commit(const std::shared_ptr<CommitRequest>& request);

  /// Does not block. Calls the request's `done` when its outcome is known, on the thread that wrote its
  /// group; it must be quick, and must not throw or call this object.
  void start(const std::shared_ptr<CommitRequest>& request);

  /// Returns true if commit() would lead at once, and the last group was written in less than a millisecond.
  bool commits_quickly() const;

  /// The last durable version.
  std::shared_ptr<const Snapshot> latest() const;

  WatchTable& watches() { return watches_; }
  CommitStats stats() const;

 private:
  // Shared with the waiting threads, which may return before the leader has released their requests.
  using Group = std::vector<std::shared_ptr<CommitRequest>>;
  struct GroupWrite;
  // For each range that a request clears: its keys, if they are few.
  using ClearedKeys = std::vector<std::optional<std::vector<std::string>>>;

  void work();
  void add(const std::shared_ptr<CommitRequest>& request);
  // Writes the next group and fires its watches. To be called if nobody leads; unlocks while it works.
  // `goes_on`: whether the caller leads again if there are more commits.
  void lead(std::unique_lock<Mutex>& lock, bool goes_on) noexcept;
  Group next_group();
  GroupWrite commit_group(const Group& group, MonotonicTime now);
  void forget_conflicts(MonotonicTime now);
  std::vector<std::string> watched_keys(const GroupWrite& write) const;
  bool conflicts(const CommitRequest& request) const;
  void prefetch_atomics(const Group& group, GroupWrite& write);
  ClearedKeys read_for(const CommitRequest& request, GroupWrite& write) const;
  std::optional<std::vector<std::string>> keys_in(const std::string& begin, const std::string& end,
                                                  const GroupWrite& write) const;
  void apply(const CommitRequest& request, const ClearedKeys& cleared, GroupWrite& write);
  std::shared_ptr<const Snapshot> publish(Version version);

  rocksdb::DB& db_;
  const Clock& clock_;
  const CommitterOptions options_;

  EmptyRanges empty_ranges_;
  // Protects latest_.
  mutable Mutex snapshot_mutex_{MutexRank::embedded_snapshot, "Committer::snapshot_mutex_"};
  std::shared_ptr<const Snapshot> latest_;
  WatchTable watches_;

  // Used by the leader only.
  ConflictSet conflict_set_;
  std::deque<std::pair<MonotonicTime, Version>> recent_groups_;
  std::optional<Error> failure_;
  std::size_t last_group_ = 0;  // its size

  mutable Mutex mutex_{MutexRank::embedded_committer, "Committer::mutex_"};  // protects the members below
  ConditionVariable wake_;  // threads_: there are commits that nobody leads
  ConditionVariable idle_;
  std::deque<std::shared_ptr<CommitRequest>> queue_;
  bool led_ = false;         // a thread writes a group
  int firing_ = 0;           // threads that have led and fire watches
  std::size_t waiting_ = 0;  // threads_ that wait
  bool stopping_ = false;
  Duration last_write_{0};  // how long writing the last group took

  std::atomic<std::uint64_t> groups_{0};
  std::atomic<std::uint64_t> commits_{0};
  std::atomic<std::uint64_t> conflicts_{0};
  std::atomic<std::uint64_t> conflict_entries_{0};

  std::vector<std::thread> threads_;  // run work()
};

/// The key of the last version, which transactions cannot reach.
inline constexpr std::string_view kVersionKey = "\xff/version";

}  // namespace divan::kv::embedded
