// The interface of the built-in reduce functions (builtin_reduce.h), and their errors.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "divan/base/error.h"
#include "divan/js/reduce_limit.h"

namespace divan::index::views {

/// A value that cannot be reduced. For _sum the name is "builtin_reduce_error", which CouchDB shows instead
/// of the group's value, with status 200. For _stats it is "invalid_value", which fails CouchDB's whole
/// request with status 500. A value type.
class ReduceError : public Error {
 public:
  /// `caused_by` is JSON text, or empty.
  ReduceError(const std::string& name, const std::string& reason, std::string_view caused_by = {});
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
  std::string_view encoded_key = {};  // collation/collation.h; used by _approx_count_distinct only
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

}  // namespace divan::index::views
