// The conditions of which a selector consists, in their normal form.
#pragma once

#include <re2/re2.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/collation/collation.h"
#include "divan/selector/path.h"
#include "divan/selector/text_operator.h"

namespace divan::selector {

/// The limits of a selector: bytes of JSON, conditions, regular expressions, and bytes of one of these.
inline constexpr std::size_t kMaxSelectorBytes = 64 << 10;
inline constexpr std::size_t kMaxConditions = 1'000;
inline constexpr std::size_t kMaxPatterns = 20;
inline constexpr std::size_t kMaxPatternBytes = 1'000;

enum class Operator {
  always,  // true
  all_of,
  any_of,
  none_of,  // one condition, within *_match
  // On one field:
  less,
  less_or_equal,
  equal,
  not_equal,
  greater_or_equal,
  greater,
  in,
  not_in,
  exists,
  type,
  mod,
  regex,
  begins_with,
  all,
  size,
  elem_match,
  all_match,
  key_map_match,
  text,  // on the whole document: only a full-text index can evaluate it
};

/// A tree of conditions. Immutable after parse_condition().
struct Condition {
  Operator op = Operator::always;
  std::vector<Condition> children{};  // of all_of, any_of and none_of; one of *_match

  // Of the others:
  Path path{};             // of the field; empty: the value itself, within *_match
  bool negated = false;    // by $not
  std::string argument{};  // as JSON; empty for *_match
  bool exists = true;      // the argument of exists
  std::string text{};      // of type, begins_with and text; JSON of equality with all
  collation::Collation collation = collation::Collation::unicode;  // of `keys`; raw for `_id`
  std::vector<std::string> keys{};       // encoded arguments of comparisons; sorted ones of in
  std::vector<std::string> values{};     // arguments of all, as JSON
  std::int64_t number = 0, divisor = 1;  // arguments of size and mod
  std::shared_ptr<const re2::RE2> pattern{};
};

/// Parses a selector in the form of json::compact(), as Selector::parse().
Condition parse_condition(std::string_view json, TextOperator text_operator = TextOperator::refused);

/// Appends the condition as a selector in CouchDB's normal form, as `_explain` shows it.
void append_selector(std::string& out, const Condition& condition);

/// The name of a value's type, as `$type` has it: null, boolean, number, string, array or object. `value` is
/// in the form of json::compact().
std::string_view type_of(std::string_view value);

/// How much more a test may take: about the bytes of JSON that it may read. Not thread-safe.
class Budget {
 public:
  explicit Budget(std::size_t bytes) : left_(bytes) {}
  /// Throws selector_too_expensive (413) if it is used up.
  void take(std::size_t bytes);

 private:
  std::size_t left_;
};

/// Returns true if the value, in the form of json::compact(), matches. `has_text` may be empty if there is no
/// `$text`.
bool matches(const Condition& condition, std::string_view value, Budget& budget, const TextTest& has_text);

}  // namespace divan::selector
