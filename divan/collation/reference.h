// A reference implementation of the order of view keys, after CouchDB's couch_ejson_compare.c: slow, obvious,
// and sharing no code with the encoding. For tests and the fuzz target.
#pragma once

#include <unicode/ucol.h>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/json.h"

namespace divan::collation::reference {

inline int sign(int value) { return (value > 0) - (value < 0); }

inline int type_rank(std::string_view json) {
  switch (json.front()) {
    case 'n': return 0;
    case 'f': return 1;
    case 't': return 2;
    case '"': return 4;
    case '[': return 5;
    case '{': return 6;
    default: return 3;
  }
}

inline int compare_strings(std::string_view a, std::string_view b) {
  static UCollator* const collator = [] {
    UErrorCode status = U_ZERO_ERROR;
    return ucol_open("", &status);
  }();
  UErrorCode status = U_ZERO_ERROR;
  const std::string left = json::string_value(a).value();
  const std::string right = json::string_value(b).value();
  const auto order = ucol_strcollUTF8(collator, left.data(), static_cast<int32_t>(left.size()), right.data(),
                                      static_cast<int32_t>(right.size()), &status);
  if (U_FAILURE(status)) std::abort();
  return order;
}

// The sign and digits of a whole number: as written, or of the double's exact value.
inline std::optional<std::string> whole_number(const std::string& token) {
  const double nearest = std::strtod(token.c_str(), nullptr);
  const bool written_whole = token.find_first_of(".eE") == std::string::npos;
  if (!written_whole || std::fabs(nearest) >= 0x1p126) {
    if (std::isinf(nearest) || nearest != std::trunc(nearest)) return std::nullopt;
    char digits[400];
    std::snprintf(digits, sizeof digits, "%.0f", nearest);
    return digits;
  }
  return token;
}

inline int compare_whole(std::string a, std::string b) {
  if (a == "-0") a = "0";
  if (b == "-0") b = "0";
  const bool negative = a.front() == '-';
  if (negative != (b.front() == '-')) return negative ? -1 : 1;
  const int by_size = a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : sign(a.compare(b));
  return negative ? -by_size : by_size;
}

inline int compare_numbers(const std::string& a, const std::string& b) {
  const auto whole_a = whole_number(a);
  const auto whole_b = whole_number(b);
  if (whole_a && whole_b) return compare_whole(*whole_a, *whole_b);
  // One of them is not a whole number, hence below 2^53 or infinite: rounding the other hides no difference.
  const double x = std::strtod(a.c_str(), nullptr);
  const double y = std::strtod(b.c_str(), nullptr);
  return x < y ? -1 : x > y ? 1 : 0;
}

int compare(std::string_view a, std::string_view b);

// The elements of an array, or the names and values of an object alternately.
inline std::vector<std::string> parts(std::string_view json) {
  std::vector<std::string> all;
  json::for_each_element(json, [&](std::string_view value) {
    all.emplace_back(value);
    return true;
  });
  json::for_each_member(json, [&](std::string_view name, std::string_view value) {
    all.push_back('"' + std::string(name) + '"');
    all.emplace_back(value);
    return true;
  });
  return all;
}

/// Negative, zero or positive, as `a` sorts before, equal to or after `b`; both in the form of
/// json::compact().
inline int compare(std::string_view a, std::string_view b) {
  if (type_rank(a) != type_rank(b)) return type_rank(a) < type_rank(b) ? -1 : 1;
  switch (type_rank(a)) {
    case 3: return compare_numbers(std::string(a), std::string(b));
    case 4: return compare_strings(a, b);
    case 5:
    case 6: {
      const std::vector<std::string> left = parts(a);
      const std::vector<std::string> right = parts(b);
      for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
        if (const int order = compare(left[i], right[i])) return order;
      }
      return left.size() < right.size() ? -1 : left.size() > right.size() ? 1 : 0;
    }
    default: return 0;
  }
}

}  // namespace divan::collation::reference
