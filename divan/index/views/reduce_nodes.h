// Partial reductions that an index keeps, so that a reduction of any range reads logarithmically many values.
//
// The rows of a view with a reduce function lie in their order, each known by its place (key, document and
// number, as bytes). A hash of its place makes one row of 32 a boundary of level 1, one of 512 also one of
// level 2, and so on: each level has one of 16 of the level below. A node, a row of its own under (level,
// place), holds the reduction of the rows from its boundary to the next boundary of the same level. A range
// is reduced from rows at its ends, from nodes of level 1 further inside, of level 2 behind these, and so on:
// up to a level that has but a few in the range, and down again. That is about 32 rows and 16 nodes a level
// at each end, whatever the range.
//
// Why this and not a tree of the kind that CouchDB keeps? Its nodes hold their children's keys and are split
// and joined as they fill and empty: what it looks like depends on the history, and a change of one row may
// move keys between nodes up to the root. Here where the boundaries are depends on the rows that there are
// and on nothing else. So
// - there is no root, nothing is balanced, split or joined, and a change touches one node of each level, or
//   two where a boundary comes or goes;
// - however the rows came to be, the nodes are those of an index that was built from nothing, to the last
//   bit also of sums of floating point, since a node is always computed from what is right below it;
// - levels can be written one after the other, in any order of keys, in as many transactions as it takes.
// The price is that nodes differ in size: a row lies in one of 64 rows on average, and in one of more than
// 350 once in 4,000 times. Whoever chooses keys so that no boundary is among them makes his own view slow.
// Fixed pieces of the key space (prefixes, say) would need no boundaries, but keys are never spread evenly;
// blocks of many rows in one value would save the keys' bytes, but make each change rewrite its block, and
// rows need no such blocks to be read in order.
//
// A node without a value is one that cannot be had: the function failed on its rows, or what it returned is
// too large to be kept. It stands there all the same, since a range must not take the node before it for more
// than it is; queries read what is below it, and find the error there.
//
// A view's nodes are there, all of them, or its rows are reduced one by one: see ReduceTreeState.
// reduce_tree_updater.h writes them.
#pragma once

#include "divan/index/views/reduction.h"

namespace divan::index::views {

/// Nodes of more bytes are not kept.
inline constexpr std::size_t kMaxReduceNodeBytes = 16'000;

/// Where the nodes of a view are, below IndexKeys. A place is what stands behind the view in a row's key,
/// without the chunk's number. docs/keyspace.md
class ReduceNodeKeys {
 public:
  ReduceNodeKeys(const IndexKeys& keys, int view);

  const std::string& state() const { return state_; }
  std::string node(int level, std::string_view place) const;
  /// The nodes of a level from one place to before another.
  kv::KeyRange range(int level, std::string_view begin, std::string_view end) const;
  /// The state and all nodes.
  kv::KeyRange all() const { return kv::below(state_); }
  /// Where the place begins in the key of a node of this level.
  std::size_t place_at(int level) const { return node(level, {}).size(); }

 private:
  std::string state_;
};

/// Comes after every place.
inline constexpr std::string_view kAfterAllPlaces = "\xff";

/// What of the nodes is there.
struct ReduceTreeState {
  enum class Kind {
    none,      // nothing that is of use
    building,  // the levels below `level`, and of this one what lies before `place`
    complete,
    given_up,  // and never to be tried again: the function runs into the limits of the sandbox
  };
  Kind kind = Kind::none;
  int level = 0;
  std::string place;

  /// Nothing is left to be done.
  bool settled() const { return kind == Kind::complete || kind == Kind::given_up; }

  bool operator==(const ReduceTreeState&) const = default;
};

/// Throws an internal error if it is damaged.
ReduceTreeState decode_reduce_tree_state(std::string_view value);
ReduceTreeState read_reduce_tree_state(kv::Transaction& tx, const ReduceNodeKeys& keys);
void write_reduce_tree_state(kv::Transaction& tx, const ReduceNodeKeys& keys, const ReduceTreeState& state);

/// A node's value in the store; nothing for one without a value.
std::string encode_reduce_node(const std::optional<Partial>& partial);
/// Throws an internal error if it is damaged.
std::optional<Partial> decode_reduce_node(std::string_view value);

/// Receives what makes up a range; each answers whether to go on.
struct RangeSink {
  ViewRowVisitor row;
  std::function<bool(const Partial&)> partial;
};

/// Goes through the rows of a range of a view (in the order of the store) from its end on, as far as the sink
/// wants to; whole nodes stand for theirs. `nodes`: whether they are complete. What is left of the range
/// stays in `range`. Reads a snapshot.
void take_range(kv::Transaction& tx, const IndexKeys& keys, int view, const FanOut& fan_out, bool nodes,
                RowRange& range, const RangeSink& sink);

}  // namespace divan::index::views
