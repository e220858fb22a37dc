#include "divan/http/byte_range.h"

#include <algorithm>
#include <charconv>

#include "divan/base/error.h"
#include "divan/http/message.h"

namespace divan::http {
namespace {

// Digits; the greatest number if they are a greater one.
std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) value = UINT64_MAX;
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<ByteRange> parse_range(std::string_view field, std::uint64_t length) {
  constexpr std::string_view kUnit = "bytes=";
  if (!equal_ignoring_case(field.substr(0, kUnit.size()), kUnit)) return std::nullopt;
  field.remove_prefix(kUnit.size());
  const auto dash = field.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = number(field.substr(0, dash)), last = number(field.substr(dash + 1));
  const bool is_suffix = dash == 0, is_open = dash + 1 == field.size();
  if ((!is_suffix && !first) || (!is_open && !last) || (is_suffix && is_open)) return std::nullopt;
  if (!is_suffix && !is_open && *last < *first) return std::nullopt;
  ByteRange range{.first = 0, .end = length};
  if (is_suffix) {
    range.first = length - std::min(length, *last);
  } else {
    range.first = *first;
    if (!is_open) range.end = std::min(length, *last + (*last < UINT64_MAX ? 1 : 0));
  }
  if (range.first >= range.end)
    throw Error(416, "requested_range_not_satisfiable", "Requested range not satisfiable");
  return range;
}

}  // namespace divan::http
