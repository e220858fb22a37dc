// The distances between the boundaries of partial reductions (reduce_nodes.h), and other parameters that were
// chosen by measurement.
#pragma once

#include <cstddef>
#include <string_view>

namespace divan::index::views {

/// On average 1 of 2^bits entries of a level begins a reduce node of the level above; a hash of its position
/// decides which. Level 0 has the rows. A value type.
struct FanOut {
  unsigned row_bits = 5;
  unsigned node_bits = 4;
  /// Number of entries read before the reduce nodes above them are computed and written.
  std::size_t at_once = 50'000;
  /// Rows of a group that a query reads one by one before it uses reduce nodes: finding the reduce nodes
  /// between two positions takes as long.
  std::size_t rows_first = 768;

  /// The highest level of which the row at `position` is a boundary; 0 if it is not a boundary.
  int level(std::string_view position) const;
};

}  // namespace divan::index::views
