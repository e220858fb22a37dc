// What was written when, for as long as a transaction may live: the memory of optimistic concurrency control.
//
// A transaction that has read the range [a, b) at version r may commit only if nothing in [a, b) was written
// at a version above r. The set keeps, for every key written lately, the version of its last write
// (`points_`), and for every range cleared lately the same (`ranges_`, an interval map: an entry gives the
// version of the keys from it to the next entry; 0 where nothing is remembered). A query of one key is
// two lookups; of a range, a walk over the blocks of points in it that stops at the first point that is
// too new.
//
// Entries below the oldest version that a living transaction may have read are not needed. They are removed
// a few at a time, in passing, by a cursor that goes round the points: every write pays for about two steps
// of it, so the set never holds many more dead entries than living ones, and no commit pays for all. Ranges
// are gone through all at once, whenever there are twice as many as the last time left.
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

  /// Whether anything in [begin, end) was written after `version`. An empty `end` stands for the key `begin`
  /// alone.
  bool changed_since(std::string_view begin, std::string_view end, Version version) const;

  /// What was written before `oldest` may be forgotten; `at_once`, all of it, instead of in passing.
  void forget_before(Version oldest, bool at_once = false);

  /// Whether everything that was written after `version` is remembered still: otherwise changed_since()
  /// cannot be asked about it.
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
