// Metrics of jobs by type, and an event for each change of a job's state.
//
// The process that commits a transaction counts and publishes its changes after the commit, all at once. On a
// shared store each process does so for its own transactions.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "divan/base/metrics.h"
#include "divan/base/mutex.h"
#include "divan/events/bus.h"
#include "divan/jobs/types.h"
#include "divan/kv/store.h"

namespace divan::jobs {

/// The channel of changes, ("_jobs"): Event::kind is the state, or "removed", Event::payload the row that
/// /_jobs/_events shows.
std::string_view jobs_channel();

/// What this process has counted of a type's attempts.
struct AttemptCounts {
  std::int64_t started = 0;
  std::int64_t waited_ms = 0;  ///< in total, from when the jobs were due until these attempts began
  std::int64_t ended = 0;
  std::int64_t ran_ms = 0;  ///< in total
  std::int64_t failed = 0;  ///< of those that have ended: with a failure, or because the worker was lost
};

/// Thread-safe, except the methods for start-up.
class JobMetrics {
 public:
  // For start-up. Without them nothing is counted or published. The arguments must outlive this object.
  void measure(Metrics& metrics);
  void publish(events::Bus& bus);

  /// By type; after many types, the others are counted together as "_other".
  std::map<std::string, AttemptCounts> counts() const;

  // Called within the transaction, with the job in its new state. Times are in milliseconds since 1970.

  /// The job was added, added again, or cancelled before it ran.
  void changed(kv::Transaction& tx, const Job& job, std::int64_t now);
  /// An attempt has begun; the job was due at `due_at`.
  void started(kv::Transaction& tx, const Job& job, std::int64_t due_at);
  /// An attempt has ended; the job was `before` and is `job` now.
  void ended(kv::Transaction& tx, const Job& before, const Job& job, Outcome outcome, std::int64_t now);
  void removed(kv::Transaction& tx, const Job& job, std::int64_t now);

 private:
  struct Change;
  struct TypeMetrics;

  bool is_enabled() const { return metrics_ != nullptr || publisher_; }
  bool has_subscribers() const;
  Change change_of(const Job& job, std::string_view state, std::int64_t now) const;
  void record(kv::Transaction& tx, Change change);
  void report(const std::vector<Change>& changes);
  void count(const Change& change);
  TypeMetrics& metrics_of(const std::string& type);

  Metrics* metrics_ = nullptr;
  std::optional<events::Publisher> publisher_;
  mutable Mutex mutex_{MutexRank::job_metrics, "JobMetrics::mutex_"};  // protects types_
  std::map<std::string, std::shared_ptr<TypeMetrics>> types_;
};

}  // namespace divan::jobs
