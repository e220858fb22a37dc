// Byte strings: std::string owns them, std::string_view refers to them. The store's keys and values, document
// bodies and protocol frames are byte strings; none of them is assumed to be text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace divan {

/// Lower-case hexadecimal digits, two per byte.
std::string to_hex(std::string_view bytes);

/// Decodes hexadecimal digits of either case; nullopt if `hex` is not hexadecimal or its length is odd.
std::optional<std::string> from_hex(std::string_view hex);

/// Standard base64 with padding (RFC 4648, section 4).
std::string to_base64(std::string_view bytes);

/// Decodes standard base64; nullopt if malformed. Padding is required.
std::optional<std::string> from_base64(std::string_view text);

/// Base64 for URLs, without padding (RFC 4648, section 5): it needs no quotes in a cookie.
std::string to_base64url(std::string_view bytes);

/// Decodes it; nullopt if malformed, or with padding.
std::optional<std::string> from_base64url(std::string_view text);

/// Appends `value` in big-endian order, so that byte order is numeric order.
void append_u16(std::string& out, std::uint16_t value);
void append_u32(std::string& out, std::uint32_t value);
void append_u64(std::string& out, std::uint64_t value);

/// Reads a big-endian number from the first bytes. `bytes` must have at least as many as the number.
std::uint16_t read_u16(std::string_view bytes);
std::uint32_t read_u32(std::string_view bytes);
std::uint64_t read_u64(std::string_view bytes);

/// Appends an unsigned LEB128 number: 7 bits per byte, lowest first, the high bit set in all but the last
/// byte.
void append_varint(std::string& out, std::uint64_t value);

/// Removes a LEB128 number from the front of `bytes`; nullopt (and `bytes` in an unspecified state) if the
/// number is truncated or does not fit 64 bits.
std::optional<std::uint64_t> take_varint(std::string_view& bytes);

/// Returns true if `text` is valid UTF-8 (no surrogates, no overlong forms).
bool is_utf8(std::string_view text);

/// Returns true if `text` has one of ASCII's control characters, which no header field may have.
bool has_control(std::string_view text);

/// The longest prefix of UTF-8 text of at most `max_bytes` that ends between characters.
std::string_view utf8_prefix(std::string_view text, std::size_t max_bytes);

}  // namespace divan
