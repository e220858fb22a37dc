// Read access to a store that no server uses.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "divan/kv/check.h"

namespace rocksdb {
class DB;
}  // namespace rocksdb

namespace divan::kv::embedded {

/// Reads a store's files and rows; needs no write permission. While it exists, no server can open the store,
/// unless the file LOCK is missing, as in some copies. Not thread-safe.
class Inspector final : public RowSource {
 public:
  /// Throws divan::Error 500 with a reason that names the directory: there is no store, it is in use or may
  /// not be read, or its format is newer than this version of Divan.
  explicit Inspector(const std::string& directory);
  ~Inspector() override;
  Inspector(const Inspector&) = delete;
  Inspector& operator=(const Inspector&) = delete;

  using Progress = std::function<void(double fraction)>;

  /// Reads every file and checks its checksums; findings name what is damaged. Returns true if the rows can
  /// be read.
  bool check_files(Findings& findings, const Progress& progress);

  // After check_files() has returned true.

  /// The last version. Damage of the engine's own rows is added to the findings.
  Version check_engine_rows(Findings& findings);
  /// About how many rows there are.
  std::uint64_t estimated_rows() const;
  void scan(const KeyRange& range, const RowVisitor& visit) override;

 private:
  const std::string directory_;
  int lock_ = -1;
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace divan::kv::embedded
