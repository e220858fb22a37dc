// The conditions of which a selector consists, in their normal form.
#pragma once

#include <re2/re2.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace divan::selector {

/// The most conditions of one selector, and the most bytes of a regular expression.
inline constexpr std::size_t kMaxConditions = 1'000;
inline constexpr std::size_t kMaxPatternBytes = 10'000;

enum class Operator {
  always,  // true
  all_of,
  any_of,
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
};

/// A tree of conditions. Immutable after parse_condition().
struct Condition {
  Operator op = Operator::always;
  std::vector<Condition> children{};  // of all_of and any_of; one of *_match

  // Of the others:
  std::vector<std::string> path{};       // of the field; empty: the value itself, within *_match
  bool negated = false;                  // by $not
  bool exists = true;                    // the argument of exists
  std::string text{};                    // of type and begins_with; JSON of equality with all
  std::vector<std::string> keys{};       // encoded arguments of comparisons (collation.h), of in and not_in
  std::vector<std::string> values{};     // arguments of all, as JSON
  std::int64_t number = 0, divisor = 1;  // arguments of size and mod
  std::shared_ptr<const re2::RE2> pattern{};
};

/// Parses a selector in the form of json::compact(), as Selector::parse().
Condition parse_condition(std::string_view json);

/// Returns true if the value, in the form of json::compact(), matches.
bool matches(const Condition& condition, std::string_view value);

}  // namespace divan::selector
