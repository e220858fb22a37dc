// Reducing the rows of a query, group by group.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "divan/index/views/rows.h"
#include "divan/index/views/view_index.h"

namespace divan::index::views {

/// Takes the rows of one group after the other. Not thread-safe.
class Reduction {
 public:
  virtual ~Reduction() = default;

  /// A row of the present group.
  virtual void add(const ViewRow& row) = 0;
  /// The group is complete; what is added next belongs to another.
  virtual void end_group() = 0;
  /// The values (JSON) of the groups that ended since the last call, in order. May call JavaScript: not for
  /// inside a transaction. Throws divan::Error if the function fails.
  virtual std::vector<std::string> take_values() = 0;
};

/// For a view with a reduce function.
std::unique_ptr<Reduction> make_reduction(const ViewIndex& index, const View& view);

}  // namespace divan::index::views
