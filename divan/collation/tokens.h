// The ends of tokens in compact JSON text.
#pragma once

#include <optional>
#include <string_view>

namespace divan::collation {

/// The index after the number that begins at `at`; `at` itself if there is no number.
inline std::size_t number_end(std::string_view json, std::size_t at) {
  const auto in_number = [](char c) {
    return (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '+' || c == 'e' || c == 'E';
  };
  while (at < json.size() && in_number(json[at])) ++at;
  return at;
}

/// The index of the closing quote of the string whose opening quote is at `at`; nullopt if there is none.
inline std::optional<std::size_t> closing_quote(std::string_view json, std::size_t at) {
  for (++at; at < json.size(); ++at) {
    if (json[at] == '"') return at;
    if (json[at] == '\\') ++at;
  }
  return std::nullopt;
}

}  // namespace divan::collation
