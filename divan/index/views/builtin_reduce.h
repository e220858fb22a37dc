// CouchDB's built-in reduce functions: _count, _sum, _stats, _approx_count_distinct, _top_N, _bottom_N,
// _first and _last, over values as JSON text. They compute and reject the same values as CouchDB's
// (couch_query_servers.erl).
//
// A reduction runs over a group of rows of any length. A Reducer processes one value at a time and stores
// only the result so far. The result is JSON text, which another Reducer can merge (CouchDB's "rereduce"); it
// does not depend on how the rows were split. shown_result() converts it to what a query shows (CouchDB's
// "finalize").
//
// A number without a decimal point and an exponent is an integer. Sums of integers, and sums of their
// squares, are exact up to 127 bits; larger ones become doubles. (CouchDB's integers are unbounded.) A result
// beyond the range of doubles is an error.
//
// Error messages contain JSON where CouchDB's contain an Erlang term.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "divan/base/error.h"
#include "divan/js/reduce_limit.h"

namespace divan::index::views {

enum class BuiltinReduce { count, sum, stats, approx_count_distinct, top, bottom, first, last };

/// Maximum N of _top_N and _bottom_N.
inline constexpr std::size_t kMaxRank = 100;

/// A built-in function with its parameter. A value type.
struct Builtin {
  Builtin(BuiltinReduce the_function, std::size_t the_rank = 0) : function(the_function), rank(the_rank) {}
  bool operator==(const Builtin&) const = default;

  BuiltinReduce function;
  std::size_t rank;  // of top and bottom: from 1 to kMaxRank; otherwise 0
};

/// Returns the function that a view's "reduce" names, or nullopt if it names none. As in CouchDB, the source
/// only has to begin with the name ("_sum\n" is _sum), except that _top_N and _bottom_N must match exactly.
std::optional<Builtin> builtin_reduce(std::string_view reduce_source);

/// Returns the error message, in CouchDB's words, for a source that begins with an underscore and is not the
/// name of a built-in function.
std::string invalid_builtin_reason(std::string_view reduce_source);

/// Which row of a group determines the result.
enum class Edge { first, last };

/// Returns the edge for _first and _last, and nullopt for other sources. These two functions need no partial
/// results: the result is one row, whose position is known.
std::optional<Edge> edge_of(std::string_view reduce_source);

/// A value that cannot be reduced. For _sum the name is "builtin_reduce_error", which CouchDB shows instead
/// of the group's value, with status 200. For _stats it is "invalid_value", which fails CouchDB's whole
/// request with status 500. A value type.
class ReduceError : public Error {
 public:
  /// `caused_by` is JSON text, or empty.
  ReduceError(std::string name, std::string reason, std::string caused_by = {});
  /// Returns the error that a partial result represents.
  static ReduceError of_partial(std::string_view row_value);

  /// The error as CouchDB shows it instead of a value: {"error": ..., "reason": ..., "caused_by": ...}.
  /// As a partial result it causes every merge with it to fail in the same way.
  const std::string& row_value() const { return row_value_; }

 private:
  std::string row_value_;
};

/// Limits how much the result of _sum may grow with the number of rows. CouchDB counts bytes of its own
/// encoding of rows; Divan counts bytes of the values' JSON text.
struct SumLimit {
  js::ReduceLimit limit;
  /// Named in the error message, for example a database, a design document and a view.
  std::string context;
  /// Called with the message instead of failing, if the limit's mode is `log`.
  std::function<void(const std::string& message)> log;

  /// The limit that applies unless the settings change it.
  static const SumLimit& default_limit();
  static const SumLimit& unlimited();
};

/// The part of a row that is reduced.
struct ReducedRow {
  std::string_view value;             // in the form of json::compact()
  std::string_view encoded_key = {};  // collation.h; used by _approx_count_distinct only
  std::string_view position = {};     // orders rows; used by _first and _last only
};

/// One reduction. Not thread-safe. Must not be used after an error.
class Reducer {
 public:
  virtual ~Reducer() = default;

  /// Adds a row; the order of calls does not matter. Throws ReduceError.
  virtual void add(const ReducedRow& row) = 0;
  void add(std::string_view value) { add(ReducedRow{value}); }

  /// Merges the result() of another reducer, or the row_value() of its error, and its bytes_in(). Throws
  /// ReduceError, and an internal error if `partial` is neither. Not supported by _first and _last.
  virtual void merge(std::string_view partial, std::uint64_t bytes) = 0;
  void merge(std::string_view partial) { merge(partial, partial.size()); }

  /// Returns the reduction of all rows so far, as JSON text. It does not depend on the order of rows, except
  /// for the rounding of sums of doubles. Throws ReduceError.
  virtual std::string result() const = 0;

  /// Returns the size in bytes of the values so far, if the function's limit needs it.
  virtual std::uint64_t bytes_in() const { return 0; }
};

/// `limit` applies to _sum, and must outlive the reducer.
std::unique_ptr<Reducer> make_reducer(const Builtin& function,
                                      const SumLimit& limit = SumLimit::default_limit());

/// Converts a reducer's result to what a query shows: a number for _approx_count_distinct, otherwise the
/// result itself. Throws an internal error if `result` is damaged.
std::string shown_result(const Builtin& function, std::string result);

}  // namespace divan::index::views
