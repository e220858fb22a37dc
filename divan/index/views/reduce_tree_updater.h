// Keeps a view's reduce nodes (reduce_nodes.h) consistent with its rows: computes which reduce nodes change,
// and their new values.
//
// This happens outside of the transaction that writes, since JavaScript may take longer than a transaction
// may last. What is read meanwhile is still valid at the commit: an index has one writer, and the transaction
// checks that no other writer has replaced it.
//
// A batch of changed rows is propagated level by level. In each level every reduce node with a changed entry
// is recomputed once, all with one call of the function; unchanged results do not propagate further. So a
// changed row costs reading the entries of one reduce node per level: some 60 rows, and then some 30 reduce
// nodes three or four times.
//
// The reduce nodes of many new rows are built together after the rows, in one pass over the rows and one over
// each level, which is a tenth of the work. A first build, or one with many changes, drops the reduce nodes
// and rebuilds them at its end.
#pragma once

#include "divan/index/views/reduce_nodes.h"

namespace divan::index::views {

/// A change of a row or of a reduce node.
struct EntryChange {
  enum class Kind { inserted, removed, changed };
  std::string position;
  Kind kind;
};

/// The changes to a view's reduce nodes. A value type.
struct ReduceNodeWrites {
  struct Node {
    int level;
    std::string position;
    std::optional<std::string> value;  // nullopt: remove it
  };
  bool clear = false;  // remove all existing reduce nodes first
  std::vector<Node> nodes;
  std::optional<ReduceTreeState> state;

  void write(kv::Transaction& tx, const ReduceNodeKeys& keys) const;
};

/// Computes the reduce nodes of one view. Not thread-safe. All arguments must outlive it.
class ReduceTreeUpdater {
 public:
  ReduceTreeUpdater(kv::Database& store, const IndexKeys& keys, const ViewSet& views, const View& view)
      : store_(store), keys_(keys), views_(views), view_(view), node_keys_(keys, view.number) {}

  /// Returns the changes that follow from `rows`, which are sorted and unique. The reduce nodes must be
  /// complete. `write_rows` applies the rows' changes to a transaction, which is not committed. May take
  /// seconds.
  ReduceNodeWrites update(const std::vector<EntryChange>& rows,
                          const std::function<void(kv::Transaction&)>& write_rows);

  /// Builds the next piece of the reduce nodes from the existing rows; returns nullopt if they are complete
  /// or disabled. With `resume_only`, continues a build but does not begin one.
  std::optional<ReduceNodeWrites> build_piece(bool resume_only);

 private:
  // The reduce nodes of one level that are being computed, over several transactions.
  class Level;

  std::vector<ReduceNodeWrites::Node> update_level(int level, const std::vector<EntryChange>& below,
                                                   const std::function<void(kv::Transaction&)>& write_below,
                                                   bool& exceeded_limit);
  std::optional<std::string> node_before(kv::Transaction& tx, int level, std::string_view position) const;
  std::vector<EntryChange> drop_unchanged(std::vector<ReduceNodeWrites::Node>& nodes) const;

  kv::Database& store_;
  const IndexKeys& keys_;
  const ViewSet& views_;
  const View& view_;
  const ReduceNodeKeys node_keys_;
};

}  // namespace divan::index::views
