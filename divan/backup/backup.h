// A whole store as a backup, and back.
#pragma once

#include "divan/backup/format.h"

namespace divan::backup {

/// Writes all rows as they are at one version while the store goes on (but for marks of commits, which mean
/// nothing later). Returns true if the sink took them all. Throws what the store throws. Sets
/// `header.shared`.
bool write_backup(kv::Database& store, Header header, const ByteSink& sink);

/// The version from which a store goes on that was restored from a backup which ends with `version`: greater
/// than any version that the store of the backup can have given out since, `now_ms` (since 1970) being now.
/// Throws bad_request if it would be too high to go on from: the clock is wrong, or the backup.
kv::Version version_after_restore(const Header& header, kv::Version version, std::int64_t now_ms);

/// Writes the rows of a backup into a store, many a transaction. Not thread-safe.
class RowLoader {
 public:
  /// `store` is nobody else's as long as the rows do not belong together.
  explicit RowLoader(kv::Database& store) : store_(store) {}

  void add(std::string_view key, std::string_view value);
  /// Writes what is left, and lets later versions be greater than `version`.
  void finish(kv::Version version);

 private:
  void flush();

  kv::Database& store_;
  std::vector<kv::KeyValue> rows_;
  std::size_t bytes_ = 0;
};

}  // namespace divan::backup
