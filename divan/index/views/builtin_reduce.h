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
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "divan/index/views/reducer.h"

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

/// `limit` applies to _sum, and must outlive the reducer.
std::unique_ptr<Reducer> make_reducer(const Builtin& function,
                                      const SumLimit& limit = SumLimit::default_limit());

/// Converts a reducer's result to what a query shows: a number for _approx_count_distinct, otherwise the
/// result itself. Throws an internal error if `result` is damaged.
std::string shown_result(const Builtin& function, std::string result);

}  // namespace divan::index::views
