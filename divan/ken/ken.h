// Ken: indexes that build themselves. When a database changes, ken requests the jobs that update its indexes,
// so that queries find the indexes up to date.
//
// A database that changed is put into a queue, once however often it changes. Ken scans the databases of
// the queue one at a time, and their design documents in random order. For each index that is behind, the
// rule in settings.h decides whether its job is requested now. A job that ken has requested holds a *channel*
// of this process until the job has ended, so ken never has more jobs requested than there are channels. If
// an index may not be built yet, its database is scanned again: as soon as the reason has gone, and after a
// minute at the latest.
//
// An index that is only a few changes behind, and whose changes cost little, is built at once by ken itself,
// without a job (index/small_build.h), unless it is changed all the time.
//
// The job queue has one job for each index, whichever process or query requests it. The job survives this
// process and ends only when the index is up to date, so ken does nothing for an index whose job is pending
// or running. A process that starts scans all databases, so ken needs no state of its own in the store.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "divan/base/rng.h"
#include "divan/base/worker_loop.h"
#include "divan/events/listener.h"
#include "divan/index/builds.h"
#include "divan/index/failures.h"
#include "divan/ken/settings.h"

namespace divan::ken {

struct KenOptions {
  /// The minimum time between two scans of a database that changes all the time. The first change after
  /// a quiet period is handled at once.
  Duration gather = std::chrono::milliseconds(50);
  index::JobClaimer* builder = nullptr;  // of this process; outlives ken
};

/// An index that ken knows: a signature in a database.
struct IndexName {
  std::string type;  // of its job
  std::string job;   // the id of its job
  std::string database;
  std::string design_document;
  std::string signature;
};

/// A snapshot of what ken does, for monitoring.
struct Status {
  struct Active {
    IndexName index;
    std::int64_t requested_at = 0;  // milliseconds since 1970
  };
  struct Waiting {
    IndexName index;
    WaitReason why{};
    std::optional<index::BuildFailures> failures = {};  // if its last build failed
  };
  struct Retry {
    std::string database;
    std::int64_t at = 0;  // milliseconds since 1970, at the latest
    std::string error;    // of its last scan; empty if some of its indexes wait
  };
  std::vector<std::string> queue;
  std::optional<std::string> scanning;
  std::vector<Active> active;
  std::vector<Waiting> waiting;
  std::vector<Retry> retries;
  /// Indexes that lacked rows of documents (index/left_out.h) when ken last scanned their database or their
  /// build ended.
  std::vector<IndexName> left_out;
  Settings settings;
};

/// Decides which indexes are built and when. The builds themselves are jobs, which an index::Builder of any
/// process runs. Thread-safe, except step(). The constructor's arguments must outlive it.
class Ken {
 public:
  /// `config` has the settings of [ken] and [ken.ignore]; a change takes effect with the next step.
  Ken(kv::Database& store, docs::Catalog& catalog, jobs::Queue& queue, const index::Kinds& kinds,
      const Clock& clock, Rng& rng, Config& config, KenOptions options = {});
  Ken(const Ken&) = delete;
  Ken& operator=(const Ken&) = delete;

  /// Subscribes to the changes of databases and starts the thread. It scans all databases once, since they
  /// may have changed before, and then those that change.
  void start();

  /// Puts the database into the queue. If its last scan failed, it is scanned after the pause that
  /// follows a failure.
  void add(const std::string& database);
  /// As add(): a database of Divan has one shard.
  void add_all_shards(const std::string& database) { add(database); }
  /// Forgets the database and removes the jobs that build its indexes, running ones included.
  void remove(const std::string& database) { remove(database, false); }
  /// Puts the databases whose indexes wait into the queue again. For when the settings of [ken] have changed.
  void reconsider();

  // Change a setting until the process ends. They return the old value, and throw bad_request if the new one
  // is not positive (a delay may be 0, and the interval must be more than 1,000). Times are in milliseconds.
  std::int64_t set_limit(std::int64_t value) { return set("limit", value); }
  std::int64_t set_batch_size(std::int64_t value) { return set("batch_size", value); }
  std::int64_t set_delay(std::int64_t value) { return set("delay", value); }
  std::int64_t set_prune_interval(std::int64_t value) { return set("prune_interval", value); }

  Status status() const;

  // What start() has the thread do, for callers that have not called it: tests and the simulation.

  /// Inspects all databases.
  void add_all();
  /// Handles the event of a database.
  void handle(const events::Event& event);
  /// Does one piece of work that is due; returns false if there is none.
  bool step();

 private:
  using Key = std::pair<std::string, std::string>;  // type and id of a job

  // An index whose job was requested, or that was built without one.
  struct Row {
    IndexName index;
    bool active = false;  // ken has not seen the job's end: it holds a channel
    std::int64_t requested_at = 0;
    MonotonicTime since;        // when the job was requested or, if it is not active, when the build ended
    kv::Versionstamp sequence;  // of the database when the job was requested
    std::shared_ptr<kv::Watch> watch;  // of the job, if it is active; null if the store has none left

    bool watch_ended() const { return watch != nullptr && (watch->fired() || watch->cancelled()); }
  };
  // A database that must be scanned again.
  struct Retry {
    MonotonicTime at;
    MonotonicTime since;
    std::set<WaitReason> wait_reasons;  // what its indexes wait for
    std::string error;                  // of its last scan; if there is one, add() does not hasten the next
  };
  // Jobs of a database that are to be removed.
  struct Removal {
    MonotonicTime at;
    bool keep_new = false;  // the database was deleted: one that has been created since has jobs of its own
  };
  // The result of scanning a database.
  struct ScanResult {
    bool gone = false;  // there is no database of this name
    std::vector<Status::Waiting> waiting;
    std::vector<IndexName> left_out;
    std::set<WaitReason> wait_reasons;
    MonotonicTime again_at = MonotonicTime::max();
    std::string error;  // why it, or a design document of it, could not be read
  };
  struct Decision;

  bool put_in_queue(const std::string& database);
  std::int64_t set(std::string_view name, std::int64_t value);
  MonotonicTime next_time() const;
  std::int64_t active() const;
  std::int64_t active_of(const std::string& database) const;

  // The parts of step(). Some return true if there was something to do.
  void read_settings_again();
  void run_periodic_tasks();
  bool remove_one();
  bool settle_one();
  bool queue_all_if_due();
  bool scan_one();
  std::optional<std::string> take_database();

  ScanResult scan_database(const std::string& name);
  void scan_design_document(ScanResult& result, const std::string& name, const std::string& design_id);
  Decision decide(kv::Transaction& tx, const docs::Database& database, const index::IndexPtr& index,
                  std::int64_t requested, bool may_be_small);
  void build_or_request(Decision& decision);
  void record(ScanResult& result, Decision& decision);
  void watch(const Key& key, std::shared_ptr<kv::Watch> watch);
  void settle(const Key& key);
  void record_left_out(const IndexName& index, bool any);
  MonotonicTime retry_time(const Key& key, const index::BuildFailures& failures, MonotonicTime now);
  std::optional<index::IndexKeys> find_keys(kv::Transaction& tx, const IndexName& index);
  void give_channel(const std::string& database);
  void remove(const std::string& database, bool keep_new);
  void remove_jobs(const std::string& database, bool keep_new);

  kv::Database& store_;
  docs::Catalog& catalog_;
  jobs::Queue& queue_;
  const index::Kinds& kinds_;
  const Clock& clock_;
  Rng& rng_;
  Config& config_;
  const KenOptions options_;

  // Protects the members below; only step() changes rows_ and settings_.
  mutable Mutex mutex_{MutexRank::ken, "Ken::mutex_"};
  Settings settings_;
  std::deque<std::string> waiting_;                                      // the queue of databases,
  std::set<std::string> queued_;                                         // and their names
  std::optional<std::string> scanning_;                                  // the database that is being scanned
  std::map<std::string, Retry> retries_;                                 // by database
  std::map<std::string, Removal> removals_;                              // by database
  std::map<std::string, std::vector<Status::Waiting>> waiting_indexes_;  // indexes that wait, by database
  std::map<std::string, std::vector<IndexName>> left_out_;  // indexes that lack rows, by database
  std::map<Key, Row> rows_;
  // When step() first saw failures whose time is in the future by this process's clock. Used by step() only.
  struct EarlyFailure {
    std::int64_t last_at = 0;
    MonotonicTime at;
  };
  std::map<Key, EarlyFailure> early_failures_;
  std::size_t round_left_ = 0;  // databases that may be scanned before the next round
  MonotonicTime next_round_;
  MonotonicTime all_at_ = MonotonicTime::max();  // when all databases are put into the queue
  MonotonicTime sweep_at_;
  MonotonicTime pruned_at_;
  bool settings_changed_ = false;
  std::set<Key> unsettled_;  // jobs that may have ended although their watch has not fired

  WorkerLoop loop_;                           // calls step()
  std::optional<events::Listener> listener_;  // calls the methods above, so it ends first
};

}  // namespace divan::ken
