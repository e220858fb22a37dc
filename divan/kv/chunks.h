// Values larger than the store takes in one row: cut into chunks under keys that end with the chunk's number.
#pragma once

#include <cstdint>
#include <string_view>

namespace divan::kv {

/// What one chunk holds at most. Below the store's limit so that a row can carry a little more.
inline constexpr std::size_t kChunkBytes = 96'000;

/// How many chunks `bytes` need; an empty value has none.
inline std::uint32_t chunk_count(std::size_t bytes) {
  return static_cast<std::uint32_t>((bytes + kChunkBytes - 1) / kChunkBytes);
}

/// Calls `write(chunk number, piece)` for each chunk of `value`, from 0 on.
template <class Write>
void for_each_chunk(std::string_view value, Write&& write) {
  for (std::uint32_t i = 0; i < chunk_count(value.size()); ++i) {
    write(i, value.substr(i * kChunkBytes, kChunkBytes));
  }
}

}  // namespace divan::kv
