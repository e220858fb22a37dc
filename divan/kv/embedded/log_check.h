// Finds missing parts of the write-ahead logs, which RocksDB would ignore.
//
// RocksDB reads the logs up to the first record that is damaged and goes on from there, since after a power
// cut the last record may be half written. But each group of commits is synced before the next one is
// written, and its keys are numbered without a gap: if anything lies behind a damaged record, or a log begins
// with a later number than the one before it ended with, it was not a power cut, and what would be dropped
// was acknowledged. A last log that was cut short cannot be distinguished from the effect of a power cut.
#pragma once

#include <rocksdb/env.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace divan::kv::embedded {

/// The logs of a store, one after the other. Not thread-safe.
class LogChain {
 public:
  /// `last_sequence`: the manifest's.
  explicit LogChain(std::uint64_t last_sequence) : last_sequence_(last_sequence) {}

  /// Throws io_error with the file's name if anything is missing in it or before it.
  void add(const std::string& file, std::string_view log);

 private:
  const std::uint64_t last_sequence_;
  std::optional<std::uint64_t> next_;  // the sequence number that the next commit has, once one was seen
};

/// Reads the logs of the store in `directory`, if there is one. Throws io_error, naming the file.
void check_logs(rocksdb::Env& env, const std::string& directory);

}  // namespace divan::kv::embedded
