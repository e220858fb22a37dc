// Recent writes and their versions, for the conflict checks of optimistic concurrency control.
//
// A transaction that has read the range [a, b) at version r may commit only if nothing in [a, b) was written
// at a version above r. The set keeps, for every key written recently, the version of its last write
// (`points_`), and for every range cleared recently the same (`ranges_`, an interval map: an entry gives the
// version of the keys from it to the next entry; 0 where nothing is remembered). A query of one key is
// two lookups; of a range, a walk over the blocks of points in it that stops at the first point that is
// too new.
//
// Entries below the oldest version that an open transaction may have read are not needed. A cursor that
// cycles through the points removes them incrementally: each write makes about two of its steps, so the set
// never has many more dead entries than live ones, and no single commit pays for all. Ranges are swept all at
// once, when there are twice as many as the last sweep left.
#pragma once

#include <absl/container/btree_map.h>

#include <string>
#include <string_view>

#include "divan/kv/embedded/points.h"
#include "divan/kv/store.h"

namespace divan::kv::embedded {

/// See above. Not thread-safe: it belongs to the committer.
class ConflictSet {
 public:
  /// `version` is at least that of every earlier call.
  void add_point(std::string_view key, Version version);
  void add_range(std::string_view begin, std::string_view end, Version version);

  /// Returns true if anything in [begin, end) was written after `version`. With an empty `end`, checks only
  /// the key `begin`.
  bool changed_since(std::string_view begin, std::string_view end, Version version) const;

  /// Forgets what was written before `oldest`: all of it if `at_once`, otherwise incrementally.
  void forget_before(Version oldest, bool at_once = false);

  /// Returns true if everything that was written after `version` is remembered, so that changed_since() may
  /// be called with it.
  bool remembers_since(Version version) const { return version + 1 >= oldest_; }

  /// Entries, for metrics.
  std::size_t size() const { return points_.size() + ranges_.size(); }
  /// About how much memory they take.
  std::size_t bytes() const { return bytes_; }

 private:
  using Entries = absl::btree_map<std::string, Version, std::less<>>;

  void set(Entries& entries, Entries::iterator hint, std::string_view key, Version version);
  Entries::iterator erase(Entries& entries, Entries::iterator entry);
  void sweep_points(std::size_t steps);
  void sweep_ranges();

  Points points_;
  Entries ranges_;
  std::size_t bytes_ = 0;
  Version oldest_ = 0;
  std::size_t added_since_sweep_ = 0;
  std::size_t ranges_left_ = 0;  // by the last sweep
};

}  // namespace divan::kv::embedded
