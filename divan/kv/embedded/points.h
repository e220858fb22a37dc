// Keys with the versions of their last writes, in blocks.
//
// An ordered map from keys to versions that finds whether any key in a range is later than a version without
// visiting each of them: keys are in blocks of at most kBlockPoints neighbours, and each block knows the
// latest version in it. A search in a range visits every block in the range, and the points of a block only
// if one of them is too late (then the result is known, except in the first and the last block).
#pragma once

#include <absl/container/btree_map.h>

#include <string>
#include <string_view>
#include <vector>

#include "divan/kv/store.h"

namespace divan::kv::embedded {

/// Not thread-safe.
class Points {
 public:
  static constexpr std::size_t kBlockPoints = 64;

  /// Returns true if the key is new. `version` is at least that of every earlier call.
  bool set(std::string_view key, Version version);

  /// True if `key` was written after `version`.
  bool changed_since(std::string_view key, Version version) const;
  /// True if any key in [begin, end) was.
  bool changed_since(std::string_view begin, std::string_view end, Version version) const;

  /// Continues where the last call ended, or at the first key if that reached the end: visits `steps` points,
  /// or up to a block more, and removes those below `oldest`. Returns the bytes of their keys.
  std::size_t sweep(std::size_t steps, Version oldest);
  /// The next sweep begins at the first key.
  void sweep_from_the_beginning() { cursor_.clear(); }

  std::size_t size() const { return size_; }

 private:
  struct Point {
    std::string key;
    Version version;
  };
  struct Block {
    std::vector<Point> points;  // in order
    Version latest = 0;         // of the points, or of one that has been removed
  };
  // By a key that is not above the block's first point. The first one is "".
  using Blocks = absl::btree_map<std::string, Block, std::less<>>;

  Blocks::const_iterator block_of(std::string_view key) const;
  void split(Blocks::iterator block, bool at_the_end);

  Blocks blocks_;
  std::size_t size_ = 0;
  std::string cursor_;
};

}  // namespace divan::kv::embedded
