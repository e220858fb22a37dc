// Ranges that are known to have no rows, so that scans need not find that out again.
//
// RocksDB keeps a deleted row as a tombstone until compaction, and a scan passes over each tombstone. A queue
// (rows are added at its end and deleted at its beginning) has all of its tombstones where every scan of it
// begins: after 100,000 jobs each scan would take 25 ms, and n jobs n². So a forward scan that passes over
// many tombstones before its first row reports where that row is. The next scan begins there.
//
// An empty range is [begin, end) with the version `since`: from that version on it has had no rows. What a
// scan of the last version reports is known to hold. What a scan of an earlier version reports is checked by
// the next commit, which knows what was written since. Every commit that writes a row into an empty range
// first shortens the range to the keys below that row. So a transaction may pass over an empty range if it
// reads `since` or a later version.
#pragma once

#include <absl/container/btree_map.h>

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/mutex.h"
#include "divan/kv/embedded/conflict_set.h"

namespace divan::kv::embedded {

/// Thread-safe, except for the committer's functions.
class EmptyRanges {
 public:
  /// A scan that passes over fewer deleted rows is not remembered.
  explicit EmptyRanges(std::size_t least_passed) : least_passed_(least_passed) {}

  /// Returns the end of the empty range that contains `begin`, for a transaction that reads `version`;
  /// `begin` if there is none.
  std::string first_row_at_or_after(std::string_view begin, Version version) const;

  /// Reports that a scan of `version` from `begin`, which may be the end of an empty range, passed over
  /// `passed` deleted rows and found no row below `end`.
  void found(std::string_view begin, std::string_view end, Version version, std::size_t passed);

  // For the committer, whose calls do not overlap: a group of commits is written between begin_group() and
  // end_group().

  /// Adds what scans reported while the previous group was written, unless rows were written there since.
  void begin_group(const ConflictSet& written);
  void row_written(std::string_view key);
  /// `version` is about to be the last one that can be read.
  void end_group(Version version);

 private:
  struct EmptyRange {
    std::string end;
    Version since;
  };
  using Ordered = absl::btree_map<std::string, EmptyRange, std::less<>>;  // by begin; none overlap
  struct Finding {
    std::string begin;
    std::string end;
    Version version;
  };

  void insert(const Finding& finding);

  const std::size_t least_passed_;
  mutable Mutex mutex_{MutexRank::embedded_empty, "EmptyRanges::mutex_"};  // protects the members below
  Ordered ranges_;
  std::vector<Finding> findings_;
  std::optional<Version> last_version_;  // nullopt while a group is written
  std::atomic<bool> has_ranges_{false};
};

}  // namespace divan::kv::embedded
