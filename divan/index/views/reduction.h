// Reducing rows, group by group: for queries, and for the partial reductions that an index keeps
// (reduce_nodes.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "divan/index/views/rows.h"
#include "divan/index/views/view_index.h"

namespace divan::index::views {

/// The error of a reduction that does not shrink: a query shows it in place of the group's row.
inline constexpr std::string_view kOverflowError = "reduce_overflow_error";

/// What rows were reduced to.
struct Partial {
  std::string value;        // JSON
  std::uint64_t bytes = 0;  // of the rows' values: what the limit of _sum is measured by
};

/// The reduction of a group.
struct Reduced {
  Partial partial;             // if it failed: what stands in the place of its value, or nothing
  std::optional<Error> error;  // why it failed
  bool hopeless = false;       // it ran into a limit of the sandbox, and would do so again
};

/// Takes the rows of one group after the other. Not thread-safe.
class Reduction {
 public:
  virtual ~Reduction() = default;

  /// A row of the present group.
  virtual void add(const ViewRow& row) = 0;
  /// Rows of the present group that were reduced before.
  virtual void add(const Partial& partial) = 0;
  /// The group is complete; what is added next belongs to another.
  virtual void end_group() = 0;
  /// The groups that ended since the last call, in order. Calls JavaScript, for all of them at once: not for
  /// inside a transaction.
  virtual std::vector<Reduced> take() = 0;

  /// The value (JSON) that a query shows of a group. An error of _sum is one; any other is thrown: it ends
  /// the request, except kOverflowError.
  virtual std::string shown(Reduced reduced) const;

  /// The present group, if it has failed already, as far as take() knows; else null.
  virtual const Reduced* failed() const = 0;
};

/// For a view with a reduce function, of an index that must outlive it.
std::unique_ptr<Reduction> make_reduction(const ViewIndex& index, const View& view);

}  // namespace divan::index::views
