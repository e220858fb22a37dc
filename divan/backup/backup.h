// A whole store as a backup, and back.
#pragma once

#include "divan/backup/format.h"

namespace divan::backup {

/// Writes all rows as they are at one version while the store goes on (but for marks of commits, which mean
/// nothing later). Answers whether the sink took them all. Throws what the store throws.
bool write_backup(kv::Database& store, const Header& header, const ByteSink& sink);

/// Writes the rows of a backup into a store, many a transaction. Not thread-safe.
class RowLoader {
 public:
  /// `store` is nobody else's as long as the rows do not belong together.
  explicit RowLoader(kv::Database& store) : store_(store) {}

  void add(std::string_view key, std::string_view value);
  /// Writes what is left, and makes versions go on from where the backup's end.
  void finish(kv::Version version);

 private:
  void flush();

  kv::Database& store_;
  std::vector<kv::KeyValue> rows_;
  std::size_t bytes_ = 0;
};

}  // namespace divan::backup
