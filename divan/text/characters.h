// The characters of UTF-8 text.
#pragma once

#include <unicode/utf8.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace divan::text {

/// The character at `at`, which must be below the size; moves `at` past it. Malformed UTF-8 is U+FFFD: one
/// for each maximal part of a character, as ICU, browsers and Java replace it.
inline UChar32 next_character(std::string_view text, std::size_t& at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) {
    ++at;
    return lead;
  }
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  UChar32 character = 0;
  U8_NEXT_OR_FFFD(bytes, at, text.size(), character);
  return character;
}

/// Appends a character, which must not be a surrogate.
inline void append_character(std::string& out, UChar32 character) {
  std::uint8_t bytes[U8_MAX_LENGTH];
  std::size_t size = 0;
  U8_APPEND_UNSAFE(bytes, size, static_cast<std::uint32_t>(character));
  out.append(reinterpret_cast<const char*>(bytes), size);
}

/// The number of UTF-16 code units of a character.
inline std::size_t utf16_units(UChar32 character) { return character > 0xFFFF ? 2 : 1; }

/// The number of UTF-16 code units of a text.
std::size_t utf16_units(std::string_view text);

bool is_ascii(std::string_view text);

/// The number of characters of a text.
std::size_t count_characters(std::string_view text);

}  // namespace divan::text
