// Ranges that are known to have no rows, so that scans need not find that out again.
//
// RocksDB keeps a deleted row, as a mark that it is deleted, until compaction comes by, and a scan passes
// over each mark. What is used as a queue (rows are added behind and deleted before) has all its marks at its
// head, just where every look at the queue begins: after 100,000 jobs each look would cost 25 ms, and n jobs
// n². So a scan forwards that had to pass over many of them at its beginning says where it found the first
// row; the next one begins there.
//
// A gap is [begin, end) with the version `since`: from that version on there were no rows in it. What a scan
// says of the last version is so; of an earlier one it is checked by the next commit, which knows what was
// written since. And every commit that writes a row into a gap first shortens it to what lies below that row.
// So a transaction may pass over a gap if it reads a version from `since` on.
#pragma once

#include <absl/container/btree_map.h>

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "divan/kv/embedded/conflict_set.h"

namespace divan::kv::embedded {

/// Thread-safe, but for what is the committer's alone.
class EmptyRanges {
 public:
  /// Deleted rows that a scan passes over before it says so.
  explicit EmptyRanges(std::size_t least_passed) : least_passed_(least_passed) {}

  /// The end of the gap that holds `begin` for a transaction that reads `version`; else `begin` itself.
  std::string first_row_at_or_after(std::string_view begin, Version version) const;

  /// A scan of `version` that began at `begin`, be it the end of a gap, passed over `passed` deleted rows and
  /// found no row below `end`.
  void found(std::string_view begin, std::string_view end, Version version, std::size_t passed);

  // For the committer, whose calls do not overlap: a group of commits is written between begin_group() and
  // end_group().

  /// Takes what scans have found while the group before was written, if nothing was written there since.
  void begin_group(const ConflictSet& written);
  void row_written(std::string_view key);
  /// `version` is about to be the last one that can be read.
  void end_group(Version version);

 private:
  struct Gap {
    std::string end;
    Version since;
  };
  using Ordered = absl::btree_map<std::string, Gap, std::less<>>;  // by their beginnings; none overlap
  struct Finding {
    std::string begin;
    std::string end;
    Version version;
  };

  void insert(const Finding& finding);

  const std::size_t least_passed_;
  mutable std::mutex mutex_;
  Ordered empty_ranges_;
  std::vector<Finding> findings_;
  std::optional<Version> last_version_;  // nothing while a group is written
  std::atomic<bool> has_gaps_{false};
};

}  // namespace divan::kv::embedded
