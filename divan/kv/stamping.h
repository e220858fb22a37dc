// How a commit's versionstamp gets into keys and values. For engines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "divan/kv/store.h"
#include "divan/kv/tuple_versionstamp.h"

namespace divan::kv {

inline constexpr std::size_t kVersionstampBytes = Versionstamp::kTransactionSize;

/// The ten bytes: the version, and the transaction's position among those that have it, both big-endian.
std::string versionstamp_bytes(Version version, std::uint16_t order);

/// Takes the little-endian offset off the end of a versionstamped key or value as the user gives it. Throws
/// client_invalid_operation if a stamp does not fit there.
std::uint32_t take_stamp_offset(std::string_view& bytes);

/// `bytes` with the stamp at `offset`.
std::string stamped(std::string_view bytes, std::uint32_t offset, std::string_view stamp);

/// The keys that a versionstamped key may become when its transaction reads `read_version`: commits after
/// that have higher versions.
KeyRange possible_keys(std::string_view key, std::uint32_t offset, Version read_version);

}  // namespace divan::kv
