// SHA-256 (FIPS 180-4).
#pragma once

#include <string>
#include <string_view>

namespace divan {

/// The first `size` bytes of the digest, 1 to 32. Thread-safe.
std::string sha256(std::string_view bytes, std::size_t size = 32);

}  // namespace divan
