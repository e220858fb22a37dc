#include "divan/base/printable.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

namespace divan {
namespace {

// Unicode's controls (C0, DEL, C1), line and paragraph separators, and marks of the direction of writing.
constexpr CharacterRange kControls[] = {{0x00, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c},
                                        {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
                                        {0xfeff, 0xfeff}};

std::string escape(char32_t code) {
  switch (code) {
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: return fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code));
  }
}

}  // namespace

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return {lead, 0};
  char32_t code = lead & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {lead, 0};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kSmallest[size] || code > 0x10ffff || surrogate) return {lead, 0};
  return {code, size};
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto [code, bytes] = first_character(text);
    if (bytes == 0) {
      out += fmt::format("\\x{:02x}", static_cast<std::uint32_t>(code));
    } else if (is_in(kControls, code)) {
      out += escape(code);
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return out;
}

}  // namespace divan
