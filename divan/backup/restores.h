// Restores databases of a backup into a running server.
//
// The rows arrive in pieces, each a small backup file of its own, and are written under new database numbers,
// which are not visible yet. The last transaction gives all databases their names, so they appear atomically.
// The state of a restore is in the store: any process can add the next piece, a repeated piece is ignored,
// and a restore that receives no piece for a while is cleared.
//
// Keys (docs/keyspace.md): ("restore", "open", id), ("restore", "db", id, number),
// ("restore", "uploads", id).
#pragma once

#include <functional>
#include <map>

#include "divan/base/change_tracker.h"
#include "divan/base/rng.h"
#include "divan/base/worker_loop.h"
#include "divan/docs/catalog.h"

namespace divan::backup {

/// A restore that has received no piece for this time is abandoned. Each process measures the time on its
/// monotonic clock, from when it first sees the current value of the restore's row, so setting the system
/// clock does not end an active restore.
inline constexpr Duration kRestoreTimeout = std::chrono::minutes(10);

/// A database to create from the rows of one in a backup.
struct RestoredDatabase {
  std::string name;             // the name to create it under
  std::int64_t number = 0;      // its number in the backup
  std::int64_t created_ms = 0;  // since 1970
};

/// The restores of a store. Thread-safe. The constructor's references must outlive it.
class Restores {
 public:
  Restores(kv::Database& store, docs::Catalog& catalog, const Clock& clock, Rng& rng);
  Restores(const Restores&) = delete;
  Restores& operator=(const Restores&) = delete;

  /// Starts the thread that clears abandoned restores.
  void start() { loop_.start(); }

  /// Begins to restore from a backup of this version, and returns the restore's id. Throws file_exists (412)
  /// if a database exists (but see Catalog::can_adopt()), illegal_database_name, bad_request for names or
  /// numbers that occur twice and for versions above kMaxRaisedVersion, and too_many_databases (413) if one
  /// transaction cannot create them all.
  std::string begin(const std::vector<RestoredDatabase>& databases, kv::Version version);

  /// Adds piece `number` (0, 1, ...): a backup file of rows of the databases. A piece that was added before
  /// is ignored. Throws not_found for an unknown restore, conflict if the previous piece is missing, and
  /// bad_backup.
  void add(const std::string& id, std::int64_t number, std::string_view piece);

  /// Makes the databases appear after all pieces, with `rows` in total, were added. Throws as begin() and
  /// add() do; then no database has appeared. Idempotent for kRestoreTimeout.
  void finish(const std::string& id, std::int64_t rows);

  /// Abandons a restore. Throws not_found.
  void abandon(const std::string& id);

  /// Clears the rows of restores that have received no piece for kRestoreTimeout, and returns the number of
  /// these restores. Call on one thread only: that of start() if that was called.
  std::size_t collect();

 private:
  struct Progress {
    std::int64_t next_piece = 0;
    std::int64_t rows = 0;

    bool finished() const { return next_piece == kFinished; }
  };
  static constexpr std::int64_t kFinished = -1;  // in place of next_piece
  struct Target {
    std::int64_t number;  // in this store
    std::string name;
    std::int64_t created_ms;
  };
  using Targets = std::map<std::int64_t, Target>;  // by the number in the backup

  void check_free(kv::Transaction& tx, const std::string& name);
  void check_size(const std::vector<RestoredDatabase>& databases);
  // Creates the database from its rows.
  void adopt(kv::Transaction& tx, const Target& target);
  std::optional<Progress> find(kv::Transaction& tx, const std::string& id);
  Progress read(kv::Transaction& tx, const std::string& id);
  void write(kv::Transaction& tx, const std::string& id, const Progress& progress);
  Targets targets(kv::Transaction& tx, const std::string& id);
  void clear(kv::Transaction& tx, const std::string& id);
  static void visit_moved(const Targets& targets, std::string_view piece,
                          const std::function<void(std::string key, std::string_view value)>& visit);

  kv::Database& store_;
  docs::Catalog& catalog_;
  const Clock& clock_;
  Rng& rng_;

  ChangeTracker<std::string> observed_;  // the rows of open restores by id, as seen by collect()

  WorkerLoop loop_;  // calls collect()
};

}  // namespace divan::backup
