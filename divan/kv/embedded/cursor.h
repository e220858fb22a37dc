// The rows of a range as a transaction sees them: the snapshot's, merged with its own writes.
#pragma once

#include "divan/kv/embedded/snapshot.h"
#include "divan/kv/embedded/write_map.h"

namespace divan::kv::embedded {

/// An iterator that cursors of one transaction use one after the other for ranges within a filter prefix: to
/// make one costs as much as to read a small range. Empty while a cursor uses it.
using PrefixIterator = std::unique_ptr<rocksdb::Iterator>;

/// Goes once over a range, forwards or backwards. Not thread-safe; the snapshot, the writes and `prefixes`
/// must outlive it and the writes must not change meanwhile.
class Cursor {
 public:
  /// `prefixes` is of the same snapshot and for the same kind of reads.
  Cursor(const Snapshot& snapshot, const WriteMap& writes, const KeyRange& range, bool reverse, Reads reads,
         PrefixIterator& prefixes);
  ~Cursor() {
    if (within_prefix_ && stored_->status().ok()) prefixes_ = std::move(stored_);
  }
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  /// Moves to the first row, then to the next one; false at the end. Throws accessed_unreadable where one of
  /// the transaction's versionstamped keys may be next.
  bool next();

  /// Of the present row; valid until next().
  std::string_view key() const { return key_; }
  std::string_view value() const { return value_; }

 private:
  // Moves to the first stored row, past what is known to have none.
  void seek_first(const Snapshot& snapshot);
  // Returns true if stored_ is at a row of the range.
  bool has_stored() const {
    return is_moved_ && stored_->Valid() && (!within_prefix_ || view(stored_->key()) < readable_.end);
  }
  // The points of the range, from the present row on.
  void find_points();
  bool next_forward();
  bool next_backward();
  void advance_stored();
  // Leaves out stored rows in cleared ranges. After it, stored_ is at a row that counts, or at its end.
  void skip_cleared();
  // Makes the point the present row, over the stored value if there is one. False if that leaves no row.
  bool take_point(const WriteMap::Points::value_type& point, const std::optional<std::string>& stored);
  void take_stored();

  const WriteMap& writes_;
  const KeyRange readable_;
  const bool is_whole_;  // the range ends where the readable part does
  const bool reverse_;
  rocksdb::Slice lower_;
  rocksdb::Slice upper_;
  PrefixIterator& prefixes_;
  const bool within_prefix_;  // stored_ is the one of `prefixes`, which does not know where the range ends
  std::unique_ptr<rocksdb::Iterator> stored_;
  bool is_moved_ = false;  // stored_ belongs to the range
  // The next point to come: at point_ going forwards, just before it going backwards.
  WriteMap::Points::const_iterator point_;
  WriteMap::Points::const_iterator first_point_;
  WriteMap::Points::const_iterator last_point_;
  std::uint64_t changes_ = 0;  // of the writes, when these were found
  bool is_at_row_ = false;
  bool stored_is_used_up_ = false;  // the stored row has been given out
  std::string_view key_;
  std::string_view value_;
  // Of a point. Not in the map: there it moves when the caller writes.
  std::string point_key_;
  std::string point_value_;
};

}  // namespace divan::kv::embedded
