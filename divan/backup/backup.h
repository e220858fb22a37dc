// Backup and restore of a whole store.
#pragma once

#include "divan/backup/format.h"

namespace divan::backup {

/// Writes all rows of one version while the store remains in use, except commit records, which have no
/// meaning later. Returns false if the sink has stopped. Throws the store's errors. Sets `header.shared`.
bool write_backup(kv::Database& store, Header header, const ByteSink& sink);

/// Returns the version from which a restored store continues, where `version` is the backup's: greater than
/// any version that the original store can have used until `now_ms` (the current time since 1970). Throws
/// bad_request if it would be too high to continue from: the clock or the backup is wrong.
kv::Version version_after_restore(const Header& header, kv::Version version, std::int64_t now_ms);

/// Writes the rows of a backup into a store, in large transactions. Not thread-safe.
class RowLoader {
 public:
  /// `store` must not be used otherwise until finish() has returned.
  explicit RowLoader(kv::Database& store) : store_(store) {}

  void add(std::string_view key, std::string_view value);
  /// Writes the remaining rows, and makes later versions greater than `version`.
  void finish(kv::Version version);

 private:
  void flush();

  kv::Database& store_;
  std::vector<kv::KeyValue> rows_;
  std::size_t bytes_ = 0;
};

}  // namespace divan::backup
