// Databases of a backup on their way into a running server.
//
// Their rows come in pieces, each of them a small backup file of its own, and get new numbers below which
// nobody looks. The last transaction gives all the databases their names, so they appear together or not at
// all. What is known of a restore stands in the store: any process on it takes the next piece, a piece that
// comes twice is taken once, and what a restore left that was not finished is cleared away once nothing has
// been heard of it for a while.
//
// Keys (docs/keyspace.md): ("restore", "open", id), ("restore", "db", id, number).
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "divan/base/rng.h"
#include "divan/docs/catalog.h"

namespace divan::backup {

/// A restore that has received no piece for this time is given up. Each process measures it on its monotonic
/// clock, from when it first sees the present value of the restore's row, so a system clock that is set
/// forward or back ends no restore that continues.
inline constexpr Duration kRestorePatience = std::chrono::minutes(10);

/// A database that is to be made from the rows of one in a backup.
struct RestoredDatabase {
  std::string name;             // that it is to have
  std::int64_t number = 0;      // that its rows have in the backup
  std::int64_t created_ms = 0;  // since 1970
};

/// The restores of a store. Thread-safe. All that it is given must outlive it.
class Restores {
 public:
  Restores(kv::Database& store, docs::Catalog& catalog, const Clock& clock, Rng& rng)
      : store_(store), catalog_(catalog), clock_(clock), rng_(rng) {}
  ~Restores();
  Restores(const Restores&) = delete;
  Restores& operator=(const Restores&) = delete;

  /// Starts the thread that clears away what was given up.
  void start();

  /// Begins to restore from a backup of this version, and returns the restore's id. Throws file_exists (412)
  /// naming a database that is there (but see Catalog::can_adopt()), bad_request for names that cannot be or
  /// come twice, and for versions beyond kMaxRaisedVersion, too_many_databases (413) if one transaction
  /// cannot make them all.
  std::string begin(const std::vector<RestoredDatabase>& databases, kv::Version version);

  /// Takes piece `number` (from 0 on, one after the other): a backup file of rows of the databases. One that
  /// was taken before changes nothing. Throws not_found for a restore that is not under way, conflict if the
  /// piece before is missing, bad_backup.
  void add(const std::string& id, std::int64_t number, std::string_view piece);

  /// All pieces were added, with `rows` in all: the databases appear. Throws as begin() and add() do; then
  /// nothing has appeared. For kRestorePatience it may be called again, and has nothing to do.
  void finish(const std::string& id, std::int64_t rows);

  /// Gives a restore up. Throws not_found.
  void abandon(const std::string& id);

  /// Clears the rows of restores that have received no piece for kRestorePatience; returns how many restores
  /// these were. For one thread: the one of start() if that was called.
  std::size_t collect();

 private:
  struct Progress {
    std::int64_t next_piece = 0;
    std::int64_t rows = 0;

    bool finished() const { return next_piece == kFinished; }
  };
  static constexpr std::int64_t kFinished = -1;  // in place of next_piece
  struct Target {
    std::int64_t number;  // in the store
    std::string name;
    std::int64_t created_ms;
  };
  using Targets = std::map<std::int64_t, Target>;  // by the number in the backup

  void check_free(kv::Transaction& tx, const std::string& name);
  void check_size(const std::vector<RestoredDatabase>& databases);
  std::optional<Progress> find(kv::Transaction& tx, const std::string& id);
  Progress read(kv::Transaction& tx, const std::string& id);
  void write(kv::Transaction& tx, const std::string& id, const Progress& progress);
  Targets targets(kv::Transaction& tx, const std::string& id);
  void clear(kv::Transaction& tx, const std::string& id);
  static void visit_moved(const Targets& targets, std::string_view piece,
                          const std::function<void(std::string key, std::string_view value)>& visit);
  void run();

  kv::Database& store_;
  docs::Catalog& catalog_;
  const Clock& clock_;
  Rng& rng_;

  struct Seen {
    std::string row;
    MonotonicTime since;
  };
  std::map<std::string, Seen> seen_;  // open restores by id, as collect() found them

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace divan::backup
