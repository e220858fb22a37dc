// Byte strings: std::string owns them, std::string_view looks at them. The store's keys and values, document
// bodies and protocol frames are all such strings; none of them is assumed to be text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace divan {

/// Lower-case hexadecimal digits, two a byte.
std::string to_hex(std::string_view bytes);

/// The bytes that `hex` (upper or lower case) stands for; nothing if it is not hexadecimal or of odd length.
std::optional<std::string> from_hex(std::string_view hex);

/// Standard base64 with padding (RFC 4648, section 4).
std::string to_base64(std::string_view bytes);

/// Decodes standard base64; nothing if malformed. Padding is required.
std::optional<std::string> from_base64(std::string_view text);

/// Appends `value` in big-endian order, so that byte order is numeric order.
void append_u16(std::string& out, std::uint16_t value);
void append_u32(std::string& out, std::uint32_t value);
void append_u64(std::string& out, std::uint64_t value);

/// Reads a big-endian number from the first bytes. The caller has checked that there are enough of them.
std::uint16_t read_u16(std::string_view bytes);
std::uint32_t read_u32(std::string_view bytes);
std::uint64_t read_u64(std::string_view bytes);

/// Appends an unsigned LEB128 number: 7 bits a byte, lowest first, high bit set on all but the last.
void append_varint(std::string& out, std::uint64_t value);

/// Takes a LEB128 number off the front of `bytes`; nothing (and `bytes` in an unspecified state) if it is cut
/// short or does not fit 64 bits.
std::optional<std::uint64_t> take_varint(std::string_view& bytes);

/// Whether `text` is valid UTF-8 (no surrogates, no overlong forms).
bool is_utf8(std::string_view text);

/// At most `max_bytes` from the beginning of UTF-8 text, cut between characters.
std::string_view utf8_prefix(std::string_view text, std::size_t max_bytes);

}  // namespace divan
