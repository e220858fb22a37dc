// Keeps a view's nodes (reduce_nodes.h) in step with its rows: works out which nodes change, and to what.
//
// All of it happens outside of the transaction that writes, since JavaScript may take longer than that may
// last. What is read meanwhile stays true until then: an index has one writer, and the transaction checks
// that nobody else was it.
//
// A batch of changed rows goes up level by level. In each level the nodes that have a changed entry below
// them are computed anew, each once, all with one call of the function; those that come out as they were
// change nothing further up. So a changed row costs the reading of one node's entries a level, some 60 rows
// and some 30 nodes three or four times over.
//
// The nodes of many new rows are made at once when the rows are there, in one pass over them and one over
// each level: that is a tenth of the work. A first build, or one with much to catch up on, drops the nodes
// and makes them anew at its end.
#pragma once

#include "divan/index/views/reduce_nodes.h"

namespace divan::index::views {

/// What happens to a row or to a node.
struct EntryChange {
  enum class Kind { inserted, removed, changed };
  std::string place;
  Kind kind;
};

/// What is to be written of a view's nodes. A value.
struct ReduceNodeWrites {
  struct Node {
    int level;
    std::string place;
    std::optional<std::string> value;  // nothing: it goes
  };
  bool clear = false;  // all there are, first
  std::vector<Node> nodes;
  std::optional<ReduceTreeState> state;

  void write(kv::Transaction& tx, const ReduceNodeKeys& keys) const;
};

/// Computes nodes of one view of an index. Not thread-safe. All that it is given must outlive it.
class ReduceTreeUpdater {
 public:
  ReduceTreeUpdater(kv::Database& store, const IndexKeys& keys, const ViewIndex& index, const View& view)
      : store_(store), keys_(keys), index_(index), view_(view), node_keys_(keys, view.number) {}

  /// What changes with rows, which are in order and each there once; of complete nodes. `write_rows` makes
  /// the rows' changes in a transaction, which is not committed. May take seconds.
  ReduceNodeWrites update(const std::vector<EntryChange>& rows,
                          const std::function<void(kv::Transaction&)>& write_rows);

  /// The next piece of making all nodes from the rows that there are; nothing if they are complete or given
  /// up. With `only_begun`, not the first one.
  std::optional<ReduceNodeWrites> make_some(bool only_begun);

 private:
  // Nodes of one level that are being computed, from one transaction after the other.
  class Level;

  std::vector<ReduceNodeWrites::Node> update_level(int level, const std::vector<EntryChange>& below,
                                                   const std::function<void(kv::Transaction&)>& write_below,
                                                   bool& hopeless);
  std::optional<std::string> node_before(kv::Transaction& tx, int level, std::string_view place) const;
  std::vector<EntryChange> drop_unchanged(std::vector<ReduceNodeWrites::Node>& nodes) const;

  kv::Database& store_;
  const IndexKeys& keys_;
  const ViewIndex& index_;
  const View& view_;
  const ReduceNodeKeys node_keys_;
};

}  // namespace divan::index::views
