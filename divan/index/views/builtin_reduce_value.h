// Values as the built-in reduces see them: numbers that stay integers as long as they can, and JSON values of
// them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "divan/index/views/collation_number.h"

namespace divan::index::views {

/// An integer of up to 128 bits or a double. Integers are added and multiplied exactly; a result that does
/// not fit becomes a double, and so does what is computed with a double. A value type.
class Number {
 public:
  Number() = default;
  explicit Number(Int128 value) : integer_(value) {}
  explicit Number(double value) : is_integer_(false), double_(value) {}

  /// `token` is a number as JSON writes it. Without a point and an exponent it is an integer, as in CouchDB.
  static Number parse(std::string_view token);

  bool is_zero_integer() const { return is_integer_ && integer_ == 0; }

  Number& operator+=(const Number& other);
  Number squared() const;
  /// By value: exact, also for an integer and a double.
  bool operator<(const Number& other) const;

  /// Appends the integer's digits, or the shortest that read back as the double. Throws ReduceError
  /// for what is not finite.
  void append_to(std::string& out) const;

 private:
  double as_double() const { return is_integer_ ? to_double(integer_) : double_; }

  bool is_integer_ = true;
  Int128 integer_ = 0;
  double double_ = 0;
};

struct Value;

/// An object, in the order in which it is written until members are added to it.
struct Members {
  std::vector<std::pair<std::string, Value>> list;  ///< names without escapes
  bool sorted = false;                              ///< by the names' bytes, each once
};

/// A null, truth value or string, as it is written.
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
