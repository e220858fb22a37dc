// Ken: indexes that build themselves. When a database changes, the jobs that bring its indexes up to date are
// asked for, before anybody queries them.
//
// A database that changed waits in a queue, once however often it changes. Databases are looked at one at a
// time, their design documents in random order; for each index that is behind, the rule in settings.h says
// whether its job is asked for now. A job that ken has asked for holds a *channel* of this process until it
// has ended, so that ken never asks for more than there are channels. Indexes that may not be built now make
// their database come again: as soon as what they wait for has come, and in a minute at the latest.
//
// What is on the way is the job's business: it is one whoever asks for it (a query, the ken of another
// process), survives this process, and ends only when nothing is left to do; so an index whose job is pending
// or runs needs nothing. A process that starts looks at all databases, and so knows all that it needs.
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
  /// A database that changes all the time is looked at once in this time; the first change after a quiet
  /// while is acted on at once.
  Duration gather = std::chrono::milliseconds(50);
  index::Builder* builder = nullptr;  // this process's, which outlives ken
};

/// An index that ken knows: a signature in a database.
struct IndexName {
  std::string type;  // of its job
  std::string job;   // its id
  std::string database;
  std::string design_document;
  std::string signature;
};

/// What ken does at a moment, for those who look.
struct Status {
  struct Active {
    IndexName index;
    std::int64_t asked_at = 0;  // milliseconds since 1970
  };
  struct Waiting {
    IndexName index;
    Hold why{};
    std::optional<index::BuildFailures> failures = {};  // if its last build failed
  };
  struct Retry {
    std::string database;
    std::int64_t at = 0;  // milliseconds since 1970, at the latest
    std::string error;    // empty: some of its indexes wait
  };
  std::vector<std::string> queue;
  std::optional<std::string> expanding;
  std::vector<Active> active;
  std::vector<Waiting> waiting;
  std::vector<Retry> retries;
  /// Indexes that lacked rows of documents (index/left_out.h) when ken saw them last: when it looked at their
  /// database, or their build ended.
  std::vector<IndexName> left_out;
  Settings settings;
};

/// Decides what to build and when; the work itself is done by whoever runs the jobs (index::Builder).
/// Thread-safe, but for step(). All that it is given must outlive it.
class Ken {
 public:
  /// `config` has the settings of [ken] and [ken.ignore], which count from the next look on.
  Ken(kv::Database& store, docs::Catalog& catalog, jobs::Queue& queue, const index::Kinds& kinds,
      const Clock& clock, Rng& rng, Config& config, KenOptions options = {});
  Ken(const Ken&) = delete;
  Ken& operator=(const Ken&) = delete;

  /// Listens to the databases and begins to work, on a thread of its own: looks at all databases once (they
  /// may have changed while nobody listened), and then at those that change.
  void start();

  /// The database is to be looked at. One that could not be read a moment ago is, when its pause is over.
  void add(const std::string& database);
  /// The same for all shards of a database: here each has one.
  void add_all_shards(const std::string& database) { add(database); }
  /// Forgets the database, and removes the jobs that build its indexes, also those that run.
  void remove(const std::string& database);
  /// The settings of [ken] have changed: whatever waits is looked at again.
  void reconsider();

  // Settings, for as long as the process lives. Each answers the old value, and throws bad_request for a new
  // one that is zero or negative (a delay of 0 is none; the interval must be more than 1,000 ms). Times are
  // in milliseconds.
  std::int64_t set_limit(std::int64_t value) { return set("limit", value); }
  std::int64_t set_batch_size(std::int64_t value) { return set("batch_size", value); }
  std::int64_t set_delay(std::int64_t value) { return set("delay", value); }
  std::int64_t set_prune_interval(std::int64_t value) { return set("prune_interval", value); }

  Status status() const;

  /// Does one thing of what is to be done now; answers false if there is nothing. For the thread, and for
  /// tests that have not called start().
  bool step();

 private:
  using Key = std::pair<std::string, std::string>;  // type and id of a job

  // An index whose job was asked for.
  struct Row {
    IndexName index;
    bool active = false;  // its job has not ended yet, as far as known: it holds a channel
    std::int64_t asked_at = 0;
    MonotonicTime since;               // when the job was asked for; of an idle one, when it ended
    kv::Versionstamp sequence;         // of the database when the job was asked for
    std::shared_ptr<kv::Watch> watch;  // of the job, if it is active; null if the store has none left

    bool watch_ended() const { return watch != nullptr && (watch->fired() || watch->cancelled()); }
  };
  // A database that is to be looked at again.
  struct Retry {
    MonotonicTime at;
    MonotonicTime since;
    std::set<Hold> holds;  // what its indexes wait for
    std::string error;     // why it could not be looked at; adding it does not bring it forward
  };
  // What has come of looking at a database.
  struct Look {
    bool gone = false;  // there is none of this name
    std::vector<Status::Waiting> waiting;
    std::vector<IndexName> left_out;
    std::set<Hold> holds;
    MonotonicTime again_at = MonotonicTime::max();
    std::string error;  // why it, or a design document of it, could not be read
  };
  struct Decision;

  void handle(const events::Event& event);
  void add_all();
  bool put_in_queue(const std::string& database);
  std::int64_t set(std::string_view name, std::int64_t value);
  MonotonicTime next_time() const;
  std::int64_t active() const;
  std::int64_t active_of(const std::string& database) const;

  // The parts of step(); those that answer say whether there was something to do.
  void read_settings_again();
  void keep_house();
  bool remove_one();
  bool settle_one();
  bool list_if_due();
  bool expand_one();
  std::optional<std::string> take_database();

  Look expand(const std::string& name);
  void look_at_design(Look& look, const std::string& name, const std::string& design_id);
  Decision decide(kv::Transaction& tx, const docs::Database& database, const index::Index& index,
                  std::int64_t asked);
  void note(Look& look, Decision& decision);
  void watch(const Key& key, std::shared_ptr<kv::Watch> watch);
  void settle(const Key& key);
  void note_left_out(const IndexName& index, bool any);
  MonotonicTime retry_time(const Key& key, const index::BuildFailures& failures);
  std::optional<index::IndexKeys> find_keys(kv::Transaction& tx, const IndexName& index);
  void give_channel(const std::string& database);
  void remove_jobs(const std::string& database);

  kv::Database& store_;
  docs::Catalog& catalog_;
  jobs::Queue& queue_;
  const index::Kinds& kinds_;
  const Clock& clock_;
  Rng& rng_;
  Config& config_;
  const KenOptions options_;

  mutable std::mutex mutex_;  // protects the members below; only step() changes rows_ and settings_
  Settings settings_;
  std::deque<std::string> waiting_;  // databases to be looked at,
  std::set<std::string> queued_;     // the same by name
  std::optional<std::string> expanding_;
  std::map<std::string, Retry> retries_;                       // by database
  std::map<std::string, MonotonicTime> removals_;              // databases whose jobs are to go, and when
  std::map<std::string, std::vector<Status::Waiting>> holds_;  // indexes that wait, by database
  std::map<std::string, std::vector<IndexName>> left_out_;     // indexes that lack rows, by database
  std::map<Key, Row> rows_;
  // When failures were first seen that, by this process's clock, are still to come: step()'s own.
  struct Seen {
    std::int64_t last_at = 0;
    MonotonicTime at;
  };
  std::map<Key, Seen> early_failures_;
  std::size_t round_left_ = 0;  // databases that may be looked at before the next round
  MonotonicTime next_round_;
  MonotonicTime all_at_ = MonotonicTime::max();  // when all databases are to be looked at
  MonotonicTime sweep_at_;
  MonotonicTime pruned_at_;
  bool settings_changed_ = false;
  std::set<Key> unsettled_;  // jobs that may have ended without a watch that fired

  WorkerLoop loop_;                           // calls step()
  std::optional<events::Listener> listener_;  // calls the methods above, so it ends first
};

}  // namespace divan::ken
