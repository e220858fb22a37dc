// Partial reductions stored in an index, so that a reduction of any range reads a logarithmic number of
// values.
//
// The rows of a view with a reduce function are sorted by their position (key, document and number, as
// bytes). A hash of the position makes one row of 32 a boundary of level 1, one of 512 also one of level 2,
// and so on: each level has one boundary for 16 of the level below. A reduce node, a row of its own under
// (level, position), holds the reduction of the rows from its boundary to the next boundary of the same
// level. A range is reduced from rows at its ends, from reduce nodes of level 1 further inside, then of level
// 2, up to the highest level that has at least one reduce node in the range. That is about 32 rows and 16
// reduce nodes a level at each end, whatever the range.
//
// This differs from CouchDB's B-tree, whose nodes hold their children's keys and are split and joined as they
// fill and empty: the shape of that tree depends on its history, and a change of one row may move keys up to
// the root. Here the boundaries depend on the current rows only. So
// - there is no root, no balancing, splitting or joining, and a change touches one reduce node of each level
//   (two where a boundary is added or removed);
// - the reduce nodes are always equal, bit for bit, to those of an index that is built from scratch. This
//   includes sums of floating-point numbers, since a reduce node is always computed from the level right
//   below;
// - levels can be written one after the other, in any order of keys, in any number of transactions.
// The price is that reduce nodes differ in size: a row is in a reduce node of 64 rows on average, and once in
// 4,000 times in one of more than 350. Users who choose keys so that none is a boundary make only their own
// view slow. Fixed pieces of the key space (prefixes, say) would need no boundaries, but keys are never
// evenly distributed; blocks of many rows in one value would save the bytes of keys, but each change would
// rewrite its block, and rows need no blocks to be read in order.
//
// A reduce node without a value means that the value is not available: the function failed on its rows, or
// its result is too large to store. The reduce node exists all the same, since otherwise the one before it
// would seem to cover its rows; queries read the level below, and find the error there.
//
// Either all reduce nodes of a view exist, or its rows are reduced one by one: see ReduceTreeState.
// reduce_tree_updater.h writes them.
#pragma once

#include "divan/index/views/reduction.h"

namespace divan::index::views {

/// Larger values are not stored.
inline constexpr std::size_t kMaxReduceNodeBytes = 16'000;

/// The keys of a view's reduce nodes, below IndexKeys. A position is the part of a row's key after the view,
/// without the chunk number. docs/keyspace.md
class ReduceNodeKeys {
 public:
  ReduceNodeKeys(const IndexKeys& keys, int view);

  const std::string& state() const { return state_; }
  std::string node(int level, std::string_view position) const;
  /// The reduce nodes of a level in [begin, end).
  kv::KeyRange range(int level, std::string_view begin, std::string_view end) const;
  /// The state and all reduce nodes.
  kv::KeyRange all() const { return kv::below(state_); }
  /// The offset of the position in the key of a reduce node of this level.
  std::size_t position_offset(int level) const { return node(level, {}).size(); }

 private:
  std::string state_;
};

/// Sorts after every position.
inline constexpr std::string_view kAfterAllPositions = "\xff";

/// Which of a view's reduce nodes exist.
struct ReduceTreeState {
  enum class Kind {
    none,      // none that can be used
    building,  // all of the levels below `level`, and those of `level` before `position`
    complete,
    disabled,  // permanently: the function exceeds the limits of the sandbox
  };
  Kind kind = Kind::none;
  int level = 0;
  std::string position;

  /// Returns true if no work is left.
  bool settled() const { return kind == Kind::complete || kind == Kind::disabled; }

  bool operator==(const ReduceTreeState&) const = default;
};

/// Throws an internal error if `value` is damaged.
ReduceTreeState decode_reduce_tree_state(std::string_view value);
ReduceTreeState read_reduce_tree_state(kv::Transaction& tx, const ReduceNodeKeys& keys);
void write_reduce_tree_state(kv::Transaction& tx, const ReduceNodeKeys& keys, const ReduceTreeState& state);

/// The value of a reduce node in the store; nullopt stands for a reduce node without a value.
std::string encode_reduce_node(const std::optional<Partial>& partial);
/// Throws an internal error if `value` is damaged.
std::optional<Partial> decode_reduce_node(std::string_view value);

/// Receives the rows and the partial reductions of a range; each function returns true to continue.
struct RangeSink {
  ViewRowVisitor row;
  std::function<bool(const Partial&)> partial;
};

/// Visits the rows of a range of a view (in the order of the store) backwards from its end, until the sink
/// returns false; a partial reduction replaces the rows of a whole reduce node. `nodes`: whether the reduce
/// nodes are complete. Sets `range` to the part that was not visited. Reads a snapshot.
void visit_range(kv::Transaction& tx, const IndexKeys& keys, int view, const FanOut& fan_out, bool nodes,
                 RowRange& range, const RangeSink& sink);

}  // namespace divan::index::views
