// The reduce functions that CouchDB has built in: _count, _sum, _stats, _approx_count_distinct, _top_N,
// _bottom_N, _first and _last, over values as JSON text. What they compute and what they refuse is CouchDB's
// (couch_query_servers.erl).
//
// A reduction runs over a group of rows of any length: a Reducer takes one value after the other and keeps no
// more than the result so far. Its result is JSON text again, which another Reducer merges (CouchDB's
// "rereduce"), whatever way the rows were split; shown_result() makes of it what a query shows (CouchDB's
// "finalize").
//
// Numbers: what is written without a point and an exponent is an integer. Sums of integers, and sums of their
// squares, are exact up to 127 bits; beyond that they go on as doubles. (CouchDB's integers are unbounded.)
// A result beyond the range of doubles is an error.
//
// Where CouchDB's errors print an Erlang term, ours print JSON.
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

/// How many values _top_N and _bottom_N can be asked for.
inline constexpr std::size_t kMaxRank = 100;

/// One of them. A value type.
struct Builtin {
  Builtin(BuiltinReduce the_function, std::size_t the_rank = 0) : function(the_function), rank(the_rank) {}
  bool operator==(const Builtin&) const = default;

  BuiltinReduce function;
  std::size_t rank;  // of top and bottom: 1 to kMaxRank
};

/// The function that a view's "reduce" names; nothing if it names none of these. As in CouchDB the source
/// must only begin with the name ("_sum\n" is _sum), but for _top_N and _bottom_N be it.
std::optional<Builtin> builtin_reduce(std::string_view reduce_source);

/// Why a source that begins with an underscore names none of these, in CouchDB's words.
std::string why_no_builtin(std::string_view reduce_source);

/// The row of a group that alone makes its result.
enum class Edge { first, last };

/// For _first and _last. They need no partial results: they have one row each, and know where it is.
std::optional<Edge> edge_of(std::string_view reduce_source);

/// Why values cannot be reduced. For _sum the name is "builtin_reduce_error", which CouchDB shows in the
/// place of the group's value and with status 200; for _stats it is "invalid_value", which ends CouchDB's
/// whole request with status 500. A value type.
class ReduceError : public Error {
 public:
  /// `caused_by` is JSON text, or empty.
  ReduceError(std::string name, std::string reason, std::string caused_by = {});
  /// Of a partial result that is an error.
  static ReduceError of_partial(std::string_view row_value);

  /// The error as CouchDB shows it in the place of a value: {"error": ..., "reason": ..., "caused_by": ...}.
  /// As a partial result it makes everything that it is merged into fail alike.
  const std::string& row_value() const { return row_value_; }

 private:
  std::string row_value_;
};

/// When the result of _sum is an error since it grows with the number of rows. CouchDB counts bytes of its
/// own encoding of rows, we count bytes of the values' JSON text.
struct SumLimit {
  js::ReduceLimit limit;
  /// What the error names as its context.
  std::string context;
  /// With the limit's mode `log`: is told of it.
  std::function<void(const std::string& message)> log;

  /// The limit that is set until it is set otherwise.
  static const SumLimit& usual();
  static const SumLimit& none();
};

/// What of a row is reduced.
struct ReducedRow {
  std::string_view value;             // in the form of json::compact()
  std::string_view encoded_key = {};  // collation.h. What _approx_count_distinct looks at, and nothing else
  std::string_view place = {};        // is less than those of the rows behind it: for _first and _last
};

/// One reduction. Not thread-safe. After an error it is good for nothing.
class Reducer {
 public:
  virtual ~Reducer() = default;

  /// Takes a row, in any order. Throws ReduceError.
  virtual void add(const ReducedRow& row) = 0;
  void add(std::string_view value) { add(ReducedRow{value}); }

  /// Takes what result() of another reducer gave, or row_value() of its error, and bytes_in() of it. Throws
  /// ReduceError, and an internal error for what is neither. Not for _first and _last.
  virtual void merge(std::string_view partial, std::uint64_t bytes) = 0;
  void merge(std::string_view partial) { merge(partial, partial.size()); }

  /// The reduction of all that was taken, as JSON text. The same rows have the same, whatever their order
  /// (but for the rounding of sums of doubles). Throws ReduceError.
  virtual std::string result() const = 0;

  /// Bytes of the values that were taken, as far as they matter to the result.
  virtual std::uint64_t bytes_in() const { return 0; }
};

/// `limit` concerns _sum, and must outlive the reducer.
std::unique_ptr<Reducer> make_reducer(const Builtin& function, const SumLimit& limit = SumLimit::usual());

/// What a query shows of a reducer's result: of _approx_count_distinct it is the number, of others the result
/// itself. Throws an internal error if `result` is damaged.
std::string shown_result(const Builtin& function, std::string result);

}  // namespace divan::index::views
