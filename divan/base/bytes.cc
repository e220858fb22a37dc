#include "divan/base/bytes.h"

#include <openssl/evp.h>
#include <simdjson.h>

#include <algorithm>

#include "divan/base/check.h"

namespace divan {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

template <class Int>
void append_big_endian(std::string& out, Int value) {
  char bytes[sizeof(Int)];
  for (std::size_t i = 0; i < sizeof(Int); ++i) {
    bytes[i] = static_cast<char>(value >> (8 * (sizeof(Int) - 1 - i)));
  }
  out.append(bytes, sizeof(Int));
}

template <class Int>
Int read_big_endian(std::string_view bytes) {
  DIVAN_CHECK(bytes.size() >= sizeof(Int), "{} bytes for a number of {}", bytes.size(), sizeof(Int));
  Int value = 0;
  for (std::size_t i = 0; i < sizeof(Int); ++i) {
    value = static_cast<Int>((value << 8) | static_cast<unsigned char>(bytes[i]));
  }
  return value;
}

}  // namespace

std::string to_hex(std::string_view bytes) {
  std::string out(bytes.size() * 2, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    out[2 * i] = kHexDigits[byte >> 4];
    out[2 * i + 1] = kHexDigits[byte & 15];
  }
  return out;
}

std::optional<std::string> from_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string out(hex.size() / 2, '\0');
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int high = hex_value(hex[2 * i]);
    const int low = hex_value(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out[i] = static_cast<char>(high << 4 | low);
  }
  return out;
}

std::string to_base64(std::string_view bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  DIVAN_CHECK(static_cast<std::size_t>(length) + 1 == out.size(), "{} digits for {} bytes", length,
              bytes.size());
  out.resize(static_cast<std::size_t>(length));
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  // EVP_DecodeBlock accepts padding anywhere, as zero bits.
  const std::size_t digits = text.find_last_not_of('=') + 1;
  const std::size_t padding = text.size() - digits;
  if (padding > 2 || text.substr(0, digits).find('=') != std::string_view::npos) return std::nullopt;
  std::string out(text.size() / 4 * 3, '\0');
  const int length =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (length < 0) return std::nullopt;
  // EVP_DecodeBlock counts the padding as zero bytes and trims white space, which is not part of base64.
  if (static_cast<std::size_t>(length) != out.size()) return std::nullopt;
  out.resize(out.size() - padding);
  return out;
}

std::string to_base64url(std::string_view bytes) {
  std::string text = to_base64(bytes);
  while (text.ends_with('=')) text.pop_back();
  for (char& c : text) c = c == '+' ? '-' : (c == '/' ? '_' : c);
  return text;
}

std::optional<std::string> from_base64url(std::string_view encoded) {
  std::string text(encoded);
  for (char& c : text) {
    if (c == '+' || c == '/' || c == '=') return std::nullopt;
    c = c == '-' ? '+' : (c == '_' ? '/' : c);
  }
  text.append((4 - text.size() % 4) % 4, '=');
  return from_base64(text);
}

void append_u16(std::string& out, std::uint16_t value) { append_big_endian(out, value); }
void append_u32(std::string& out, std::uint32_t value) { append_big_endian(out, value); }
void append_u64(std::string& out, std::uint64_t value) { append_big_endian(out, value); }

std::uint16_t read_u16(std::string_view bytes) { return read_big_endian<std::uint16_t>(bytes); }
std::uint32_t read_u32(std::string_view bytes) { return read_big_endian<std::uint32_t>(bytes); }
std::uint64_t read_u64(std::string_view bytes) { return read_big_endian<std::uint64_t>(bytes); }

void append_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (bytes.empty()) return std::nullopt;
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    if (shift == 63 && byte > 1) return std::nullopt;
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return std::nullopt;
}

bool is_utf8(std::string_view text) { return simdjson::validate_utf8(text); }

bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
}

std::string_view utf8_prefix(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  while (max_bytes > 0 && (static_cast<unsigned char>(text[max_bytes]) & 0xc0) == 0x80) --max_bytes;
  return text.substr(0, max_bytes);
}

}  // namespace divan
