// The values that built-in reduce functions process: numbers that remain integers as long as possible, and
// JSON values that contain them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "divan/collation/number.h"

namespace divan::index::views {

/// An integer of up to 128 bits or a double. Integer addition and multiplication are exact; a result that
/// does not fit, or that has a double as an operand, is a double. A value type.
class Number {
 public:
  Number() = default;
  explicit Number(collation::Int128 value) : integer_(value) {}
  explicit Number(double value) : is_integer_(false), double_(value) {}

  /// `token` is a number as JSON writes it. Without a point and an exponent it is an integer, as in CouchDB.
  static Number parse(std::string_view token);

  bool is_zero_integer() const { return is_integer_ && integer_ == 0; }

  Number& operator+=(const Number& other);
  Number squared() const;
  /// Compares by value; exact, also for an integer and a double.
  bool operator<(const Number& other) const;

  /// Appends the digits of an integer, or the shortest text that is read back as the same double. Throws
  /// ReduceError if the value is not finite.
  void append_to(std::string& out) const;

 private:
  double as_double() const { return is_integer_ ? collation::to_double(integer_) : double_; }

  bool is_integer_ = true;
  collation::Int128 integer_ = 0;
  double double_ = 0;
};

struct Value;

/// An object. Its members are in their original order until members are added.
struct Members {
  std::vector<std::pair<std::string, Value>> list;  ///< names without escapes
  bool sorted = false;                              ///< whether `list` is sorted by name, without duplicates
};

/// A null, boolean or string, as JSON text.
struct Opaque {
  std::string text;
};

/// A JSON value.
struct Value : std::variant<Number, std::vector<Value>, Members, Opaque> {
  using variant::variant;
};

using Array = std::vector<Value>;

/// `json` is in the form of json::compact(); throws an internal error if it is not.
Value parse_value(std::string_view json);

void append_value(std::string& out, const Value& value);
std::string to_json(const Value& value);

}  // namespace divan::index::views
