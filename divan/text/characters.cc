#include "divan/text/characters.h"

#include <algorithm>

namespace divan::text {

std::size_t utf16_units(std::string_view text) {
  std::size_t units = 0;
  for (std::size_t at = 0; at < text.size();) units += utf16_units(next_character(text, at));
  return units;
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
}

std::size_t count_characters(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) next_character(text, at);
  return count;
}

}  // namespace divan::text
