// Finds damage in the write-ahead log that RocksDB would take for its end.
//
// RocksDB reads the log up to the first record that is damaged and goes on from there, since after a power
// cut the last record may be half written. But each group of commits is synced before the next one is
// written: if there is a whole record behind a damaged one, it was not a power cut that damaged it, and what
// would be dropped was acknowledged.
#pragma once

#include <rocksdb/env.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace divan::kv::embedded {

/// The offset of the first damaged record in a log that has a whole record behind it; nothing if there is
/// none. The format is that of RocksDB's "Write Ahead Log File Format".
std::optional<std::size_t> find_log_damage(std::string_view log);

/// Reads the logs in `directory`. Throws io_error with the file's name and the offset of the damage.
void check_logs(rocksdb::Env& env, const std::string& directory);

}  // namespace divan::kv::embedded
