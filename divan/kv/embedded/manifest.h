// RocksDB's manifest: the log of which files the store has.
//
// RocksDB takes the end of a manifest for damage if a power cut left half of its last record in sectors of
// zeros. It is safe to cut such a record off: nothing that relies on a record is done before it is synced.
// But a record that was synced and damaged later looks the same. The store would then lose the commits in
// some tables; the version that each commit writes shows this.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/options.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "divan/kv/error.h"

namespace divan::kv::embedded {

/// The part of a manifest that is about the logs.
struct Manifest {
  std::uint64_t first_log = 0;      // that is needed; a later one may be the first that there is
  std::uint64_t last_sequence = 0;  // of a key, when the last record was written
  std::size_t size = 0;             // without what is damaged at its end
};

/// Accepts any bytes. Throws io_error, naming the file and the first wrong byte, if there are records after
/// damage.
Manifest read_manifest(const std::string& file, std::string_view contents);

/// The manifest in use; nullopt if there is no store.
std::optional<std::string> manifest_file(rocksdb::Env& env, const std::string& directory);

/// Removes an incomplete record, which a power cut left, from the end of the manifest. If commits are
/// `durable` and it was damaged otherwise, throws io_error and leaves the manifest unchanged.
void repair_manifest(const rocksdb::Options& options, const std::string& directory, bool durable);

Error damaged_file(const std::string& file, std::size_t at, std::string_view what_lies_behind);
std::string read_file(rocksdb::Env& env, const std::string& file);

}  // namespace divan::kv::embedded
