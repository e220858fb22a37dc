// How far apart the boundaries of partial reductions lie (reduce_nodes.h), and what else is a matter of
// measuring.
#pragma once

#include <cstddef>
#include <string_view>

namespace divan::index::views {

/// A level, of nodes or (0) of rows, has 1 of 2^bits entries of the level below; a hash of its place decides
/// which. A value type.
struct FanOut {
  unsigned row_bits = 5;
  unsigned node_bits = 4;
  /// Entries that are read before the nodes above them are computed and written.
  std::size_t at_once = 50'000;
  /// Rows of a group that are read one by one before a query looks for nodes: finding those that lie between
  /// two places takes as long.
  std::size_t rows_first = 768;

  /// The highest level that the row at `place` is a boundary of; 0 if it is none.
  int level(std::string_view place) const;
};

}  // namespace divan::index::views
