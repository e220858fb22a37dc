// The default engine: one process, one data directory, on RocksDB.
#pragma once

#include <memory>
#include <string>

#include "divan/base/rng.h"
#include "divan/kv/embedded/committer.h"
#include "divan/kv/embedded/options.h"
#include "divan/kv/store.h"

namespace divan::kv::embedded {

/// The format of a data directory that this version writes, and the oldest that it reads. An older version
/// refuses the format of this one. docs/storage.md lists them.
inline constexpr int kFormat = 12;
inline constexpr int kOldestFormat = 3;

/// Throws divan::Error 500 naming the directory unless there is a store of a format that this version reads.
/// Changes nothing.
void check_store_format(const std::string& directory);

/// A kv::Database in a data directory. Thread-safe. Transactions must not outlive it.
class EmbeddedDatabase final : public Database {
 public:
  /// Opens the store in `options.directory`, and raises an older format to kFormat. Throws divan::Error 500
  /// with a reason that names the directory: it is in use by another process, of a format that this version
  /// does not read, not Divan's, or damaged.
  /// The clock and rng must outlive the database.
  EmbeddedDatabase(const Options& options, const Clock& clock, Rng& rng);
  ~EmbeddedDatabase() override;

  std::unique_ptr<Transaction> begin() override;
  Version dump(const RowVisitor& visit) override;
  std::int64_t estimate_bytes(const KeyRange& range) override;
  void advance_version(Version at_least) override;

  CommitStats stats() const { return committer_->stats(); }

 private:
  const Clock& clock_;
  Rng& rng_;
  std::unique_ptr<rocksdb::DB> db_;
  std::unique_ptr<Committer> committer_;
};

}  // namespace divan::kv::embedded
