// The reduce functions that CouchDB has built in: _count, _sum and _stats, over values as JSON text. What
// they compute and what they refuse is CouchDB's (couch_query_servers.erl).
//
// A reduction runs over a group of rows of any length: a Reducer takes one value after the other and keeps no
// more than the result so far. Its result is JSON text again, and also the partial result that another
// Reducer merges (CouchDB's "rereduce"), whatever way the rows were split.
//
// Numbers: what is written without a point and an exponent is an integer. Sums of integers, and sums of their
// squares, are exact up to 127 bits; beyond that they go on as doubles. (CouchDB's integers are unbounded.)
// A result beyond the range of doubles is an error.
//
// Where CouchDB's errors print an Erlang term, ours print JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "divan/base/error.h"

namespace divan::index::views {

enum class BuiltinReduce { count, sum, stats };

/// The function that a view's "reduce" names; nothing if it names none of these. As in CouchDB the source
/// must only begin with the name ("_sum\n" is _sum).
std::optional<BuiltinReduce> builtin_reduce(std::string_view reduce_source);

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

/// When the result of _sum is an error since it grows with the number of rows: CouchDB's settings
/// reduce_limit, reduce_limit_threshold and reduce_limit_ratio in [query_server_config]. CouchDB counts bytes
/// of its own encoding of rows, we count bytes of the values' JSON text.
struct SumLimit {
  /// A result of up to this many bytes is always good.
  std::size_t threshold = 5000;
  /// A larger one must be this many times smaller than what went in.
  double ratio = 2.0;
  /// What the error names as its context.
  std::string context;

  static SumLimit none() { return {std::numeric_limits<std::size_t>::max(), 0, {}}; }
};

/// One reduction. Not thread-safe. After an error it is good for nothing.
class Reducer {
 public:
  virtual ~Reducer() = default;

  /// Takes a row's value, which is in the form of json::compact(). Throws ReduceError.
  virtual void add(std::string_view value) = 0;

  /// Takes what result() of another reducer gave, or row_value() of its error, and bytes_in() of it. Throws
  /// ReduceError.
  virtual void merge(std::string_view partial, std::uint64_t bytes) = 0;
  void merge(std::string_view partial) { merge(partial, partial.size()); }

  /// The reduction of all that was taken, as JSON text; of nothing it is 0, or zeros. Throws ReduceError.
  virtual std::string result() const = 0;

  /// Bytes of the values that were taken, as far as they matter to the result.
  virtual std::uint64_t bytes_in() const { return 0; }
};

/// `limit` concerns _sum.
std::unique_ptr<Reducer> make_reducer(BuiltinReduce function, SumLimit limit = {});

}  // namespace divan::index::views
