// Ranges of bytes that a request asks for (RFC 9110, section 14).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace divan::http {

/// The bytes from `first` up to `end`.
struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

/// The range of a Range field, within a representation of `length` bytes. Returns nullopt, so that all is
/// sent, if the field is malformed, has another unit or several ranges. Throws
/// requested_range_not_satisfiable (416) if no byte of the representation is in it.
std::optional<ByteRange> parse_range(std::string_view field, std::uint64_t length);

}  // namespace divan::http
