// Text of untrusted origin (an id, an error message) for terminals and the log, which it must not control.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace divan {

/// Escapes characters that control a terminal as JSON does: control characters (including newlines) become
/// "\n" or "\u001b", and so do marks of the direction of writing. Bytes that are not UTF-8 become "\xff".
std::string printable(std::string_view text);

/// A character of a UTF-8 text.
struct Character {
  char32_t code;
  std::size_t bytes;  ///< 0: not UTF-8
};
/// The first character of the text, which must not be empty.
Character first_character(std::string_view text);

/// Characters from `first` to `last`.
struct CharacterRange {
  char32_t first, last;
};
inline bool is_in(std::span<const CharacterRange> ranges, char32_t c) {
  return std::ranges::any_of(
      ranges, [&](const CharacterRange& range) { return range.first <= c && c <= range.last; });
}

}  // namespace divan
