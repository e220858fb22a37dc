// A version of the store that can be read, shared by all transactions that read it.
#pragma once

#include <rocksdb/db.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "divan/kv/embedded/empty_ranges.h"
#include "divan/kv/store.h"

namespace divan::kv::embedded {

/// How values are read.
enum class Reads {
  may_block,    // from the disk, if they are not in memory
  once,         // the same, and they are not kept in the cache
  from_memory,  // throws would_block if they are not there
};

/// Immutable and thread-safe. Reads throw io_error when RocksDB cannot read its files.
class Snapshot {
 public:
  Snapshot(rocksdb::DB& db, Version version, EmptyRanges& ranges)
      : db_(db), snapshot_(db.GetSnapshot()), version_(version), empty_ranges_(ranges) {}
  ~Snapshot() { db_.ReleaseSnapshot(snapshot_); }
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  Version version() const { return version_; }
  EmptyRanges& empty_ranges() const { return empty_ranges_; }

  std::optional<std::string> get(std::string_view key, Reads reads = Reads::may_block) const;
  std::vector<std::optional<std::string>> get_many(std::span<const std::string> keys,
                                                   Reads reads = Reads::may_block) const;

  /// An iterator that sees the keys in [lower, upper) only, to go one way; both must outlive it.
  std::unique_ptr<rocksdb::Iterator> iterate(const rocksdb::Slice* lower, const rocksdb::Slice* upper,
                                             bool reverse = false, Reads reads = Reads::may_block) const;
  /// An iterator to go forwards from any number of keys, after Seek() to each. It ends where the filter
  /// prefix of that key does (key_prefix.h); the key must have one.
  std::unique_ptr<rocksdb::Iterator> iterate_prefixes(Reads reads) const;

 private:
  rocksdb::ReadOptions read_options(Reads reads) const;

  rocksdb::DB& db_;
  const rocksdb::Snapshot* snapshot_;
  Version version_;
  EmptyRanges& empty_ranges_;
};

/// Throws would_block if a read from memory found that it needs the disk, and io_error with RocksDB's words
/// unless `status` is ok.
void check_status(const rocksdb::Status& status);

inline rocksdb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
inline std::string_view view(const rocksdb::Slice& bytes) { return {bytes.data(), bytes.size()}; }

}  // namespace divan::kv::embedded
