// Options of an embedded store.
#pragma once

#include <cstddef>
#include <string>

namespace rocksdb {
class Env;
}

namespace divan::kv::embedded {

struct Options {
  std::string directory;  // made if missing
  bool durable = true;    // false: acknowledged commits may be lost in a power cut (not in a crash)
  std::size_t cache_bytes = 128 << 20;        // of uncompressed blocks
  std::size_t write_buffer_bytes = 64 << 20;  // of writes that are in the log only
  std::size_t max_watches = 10'000;
  // Of keys that are remembered for conflict checks. If more is written within a few seconds, older
  // transactions fail early with transaction_too_old.
  std::size_t max_conflict_bytes = 128 << 20;
  // If a scan passes over this many deleted rows before its first row, they are remembered (empty_ranges.h).
  std::size_t least_passed = 64;
  rocksdb::Env* env = nullptr;  // the file system; null: the machine's
};

}  // namespace divan::kv::embedded
