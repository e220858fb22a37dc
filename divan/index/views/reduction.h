// Reduces rows group by group: for queries, and for the partial reductions stored in an index
// (reduce_nodes.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "divan/index/views/rows.h"
#include "divan/index/views/view_set.h"

namespace divan::index::views {

/// The error of a reduction that does not shrink: a query shows it instead of the group's row.
inline constexpr std::string_view kOverflowError = "reduce_overflow_error";

/// A partial reduction.
struct Partial {
  std::string value;        // JSON
  std::uint64_t bytes = 0;  // size of the rows' values, for the limit of _sum
};

/// The reduction of a group.
struct Reduced {
  Partial partial;              // if it failed: the error object that replaces the value, or empty
  std::optional<Error> error;   // why it failed
  bool exceeded_limit = false;  // it exceeded a limit of the sandbox, and would do so again
};

/// Reduces the rows of one group after the other. Not thread-safe.
class Reduction {
 public:
  virtual ~Reduction() = default;

  /// Adds a row to the current group.
  virtual void add(const ViewRow& row) = 0;
  /// Adds rows that are already reduced to the current group.
  virtual void add(const Partial& partial) = 0;
  /// Ends the current group; what is added next belongs to another one.
  virtual void end_group() = 0;
  /// Returns the results of the groups that ended since the last call, in order. Calls JavaScript once for
  /// all of them: must not be called inside a transaction.
  virtual std::vector<Reduced> take_results() = 0;

  /// Returns the value (JSON) that a query shows for a group. An error of _sum is shown instead of a value.
  /// Any other error is thrown; it ends the request unless it is kOverflowError.
  virtual std::string shown(Reduced reduced) const;

  /// The current group if it is known to have failed as of the last take_results(); else null.
  virtual const Reduced* failed() const = 0;
};

/// For a view with a reduce function, of views that must outlive it.
std::unique_ptr<Reduction> make_reduction(const ViewSet& views, const View& view);

}  // namespace divan::index::views
