#include "divan/collation/number.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>

namespace divan::collation {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The power of ten of the first digit that is not zero, with an error of at most one. Its sign distinguishes
// a number that is too large for a double from one that is too small.
std::int64_t decimal_magnitude(std::string_view token) {
  constexpr std::int64_t kPlenty = std::int64_t{1} << 40;
  std::int64_t magnitude = 0;
  bool seen_point = false;
  bool seen_digit = false;
  std::size_t i = 0;
  for (; i < token.size() && token[i] != 'e' && token[i] != 'E'; ++i) {
    seen_digit = seen_digit || (is_digit(token[i]) && token[i] != '0');
    if (token[i] == '.') {
      seen_point = true;
    } else if (is_digit(token[i])) {
      if (!seen_point && seen_digit) ++magnitude;
      if (seen_point && !seen_digit) --magnitude;
    }
  }
  if (i == token.size()) return magnitude;
  ++i;
  if (i < token.size() && token[i] == '+') ++i;
  std::int64_t exponent = 0;
  const auto [end, error] = std::from_chars(token.data() + i, token.data() + token.size(), exponent);
  if (error == std::errc::result_out_of_range) exponent = token[i] == '-' ? -kPlenty : kPlenty;
  return magnitude + std::clamp(exponent, -kPlenty, kPlenty);
}

}  // namespace

std::optional<Int128> integer_value(std::string_view token) {
  const char* const begin = token.data();
  const char* const end = begin + token.size();
  std::int64_t small = 0;
  const auto [stop, error] = std::from_chars(begin, end, small);
  if (error == std::errc() && stop == end) return small;
  if (error != std::errc::result_out_of_range || stop != end) return std::nullopt;

  const bool negative = token.front() == '-';
  Int128 value = 0;
  for (const char digit : token.substr(negative ? 1 : 0)) {
    if (__builtin_mul_overflow(value, Int128{10}, &value)) return std::nullopt;
    const Int128 step = negative ? '0' - digit : digit - '0';
    if (__builtin_add_overflow(value, step, &value)) return std::nullopt;
  }
  return value;
}

double double_value(std::string_view token) {
  double value = 0;
  const auto [stop, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error != std::errc::result_out_of_range) return value;
  if (decimal_magnitude(token) <= 0) return 0;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return token.front() == '-' ? -kInfinity : kInfinity;
}

double to_double(Int128 value) {
  // The CPU converts 64 bits; 128 bits take a library call that is many times slower.
  const auto small = static_cast<std::int64_t>(value);
  return small == value ? static_cast<double>(small) : static_cast<double>(value);
}

std::string to_string(Int128 value) {
  std::string digits;
  const bool negative = value < 0;
  do {
    const int digit = static_cast<int>(value % 10);
    digits += static_cast<char>('0' + (negative ? -digit : digit));
    value /= 10;
  } while (value != 0);
  if (negative) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace divan::collation
