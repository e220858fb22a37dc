// Values larger than the store takes in one row: cut into chunks under keys that end with the chunk's number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/kv/store.h"

namespace divan::kv {

/// The maximum size of a chunk. It is below the store's limit for values, so that a row can carry a little
/// more.
inline constexpr std::size_t kChunkBytes = 96'000;

/// Returns the number of chunks of a value with `bytes` bytes; an empty value has none.
constexpr std::uint32_t chunk_count(std::size_t bytes) {
  return static_cast<std::uint32_t>((bytes + kChunkBytes - 1) / kChunkBytes);
}

/// Calls `write(chunk number, piece)` for each chunk of `value`, from 0 on.
template <class Write>
void for_each_chunk(std::string_view value, Write&& write) {
  for (std::uint32_t i = 0; i < chunk_count(value.size()); ++i) {
    write(i, value.substr(i * kChunkBytes, kChunkBytes));
  }
}

/// The value whose chunks have the keys `key_of(chunk number)`, all read together, as a snapshot; nullopt if
/// one is missing.
template <class KeyOf>
std::optional<std::string> read_chunks(Transaction& tx, std::uint32_t chunks, KeyOf&& key_of) {
  if (chunks == 1) return tx.get(key_of(0), Isolation::snapshot);
  std::vector<std::string> keys;
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) keys.push_back(key_of(chunk));
  std::string value;
  for (const auto& piece : tx.get_many(keys, Isolation::snapshot)) {
    if (!piece) return std::nullopt;
    value += *piece;
  }
  return value;
}

}  // namespace divan::kv
