// Compactions of databases, by request or automatically
// (https://docs.couchdb.org/en/stable/maintenance/compaction.html).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "divan/base/config.h"
#include "divan/base/mutex.h"
#include "divan/base/worker_loop.h"
#include "divan/docs/compaction.h"

namespace divan::compaction {

/// A compaction that was requested, and has not ended.
struct Running {
  docs::Database database;
  std::int64_t started_ms = 0;  // milliseconds since 1970
  std::int64_t updated_ms = 0;  // the last transaction
  std::int64_t changes = 0;     // that were searched

  // The state of Compactor::step().
  std::optional<kv::Versionstamp> end{};  // of the changes; nullopt: not read yet
  std::size_t changes_at_once = docs::kMaxCompactedChanges;
  int conflicts = 0;                // in succession
  bool is_requested_again = false;  // since it has begun
};

/// Compacts databases. Each serving process has one for the requests that it receives. In those with the
/// background work `compaction`, it also compacts databases in which replaced revisions take too much space;
/// any number may do so in the same store. Several compactions take turns. `config` has the rule, in
/// [smoosh.ratio_dbs]. Thread-safe.
class Compactor {
 public:
  Compactor(kv::Database& store, docs::Catalog& catalog, const Clock& clock, const Config& config,
            bool is_automatic);
  Compactor(const Compactor&) = delete;
  Compactor& operator=(const Compactor&) = delete;

  /// Starts the thread that calls step().
  void start() { loop_.start(); }
  /// Ends the thread, after the present transaction. Does not wait; the destructor does. What is left of a
  /// compaction is left to the next one of its database.
  void stop() { loop_.stop(); }

  /// Compacts the database soon. If that is already running, it is done once more for what was written since.
  void request(const docs::Database& database);
  /// Those of this process.
  std::vector<Running> running() const;
  bool is_running(const docs::Database& database);

  /// Completes all compactions that were requested, one transaction of each in turn, and is to be called
  /// again for the automatic ones. Call on one thread only: that of start() if that was called. Returns when
  /// the next call is due.
  MonotonicTime step();

 private:
  // Requires the mutex. Returns null if there is none.
  Running* find_running(const docs::Database& database);
  void request_automatic();
  // Runs one transaction. Returns false if the compaction has ended.
  bool advance(Running& compaction);
  // The same, but throws an error that ends it.
  bool try_advance(Running& compaction);

  kv::Database& store_;
  docs::Catalog& catalog_;
  const Clock& clock_;
  const Config& config_;
  const bool is_automatic_;
  MonotonicTime next_search_{};  // for databases to compact
  // Databases whose compaction has failed, by number: when to try again automatically.
  std::map<std::int64_t, MonotonicTime> failed_;
  mutable Mutex mutex_{MutexRank::compactor, "Compactor::mutex_"};
  // Added by any thread; otherwise changed by the thread of step() only, except for is_requested_again.
  std::vector<Running> running_;
  WorkerLoop loop_;  // calls step()
};

/// The names of the settings, CouchDB's
/// (https://docs.couchdb.org/en/stable/maintenance/compaction.html#channel-configuration).
inline constexpr const char* kSection = "smoosh.ratio_dbs";
inline constexpr const char* kMinPriority = "min_priority";
inline constexpr double kDefaultMinPriority = 2.0;
inline constexpr const char* kMinSize = "min_size";
inline constexpr std::int64_t kDefaultMinSize = 1'048'576;

}  // namespace divan::compaction
