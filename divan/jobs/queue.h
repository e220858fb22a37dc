// The durable job queue, as its users and operators call it: types, adding, removing and reading jobs.
//
// Every function takes a transaction first, so that a job and the documents that it concerns are written
// atomically. A committed job runs at least once. The writes of a worker in the transaction of its update()
// or finish() are committed at most once, and only while the attempt owns the job: both check the attempt's
// lock, which becomes invalid when the attempt ends for any reason. attempts.h is the workers' side.
#pragma once

#include <map>
#include <vector>

#include "divan/jobs/queue_core.h"
#include "divan/jobs/schedule.h"

namespace divan::jobs {

/// Thread-safe. The registry, clock and rng must outlive it.
class Queue : public QueueCore {
 public:
  /// Registers itself with the registry: when a registration ends, the worker's jobs are reclaimed
  /// (worker_jobs.h).
  Queue(workers::Registry& registry, const Clock& clock, Rng& rng);

  /// Makes a type the server's own: it cannot be removed, and is declared with these settings if a job is
  /// added while it is missing. Call during start-up only.
  void set_own_type(std::string type, const TypeSettings& settings) {
    own_types_.insert_or_assign(std::move(type), settings);
  }

  bool is_own_type(std::string_view type) const { return own_types_.contains(type); }

  // Types. A type is declared before its jobs are added.

  /// A schedule in the settings creates the type's job `_periodic`, which is changed and removed with it.
  void set_type(kv::Transaction& tx, std::string_view type, const TypeSettings& settings);
  /// Removes the type, with its jobs if `force`. Throws conflict (409) if it has jobs and `force` is false,
  /// and forbidden (403) if it is the server's own.
  void remove_type(kv::Transaction& tx, std::string_view type, bool force);

  // Jobs.

  struct AddOptions {
    // Milliseconds since 1970; 0: at once. Without it a new job runs at once, and a pending one keeps its
    // time.
    std::optional<std::int64_t> scheduled_at = {};
    std::int64_t priority = 0;              // lower runs first
    std::optional<Schedule> schedule = {};  // makes it a periodic job; excludes `scheduled_at`
    std::string limits = {};                // the job's own settings, from job_limits()
  };
  struct Added {
    std::string id;
    bool created;  // false: the job existed
  };
  /// Adds a job; without an id it gets a UUID. If a job with this id is running, it will run again with this
  /// data after its current run (with all its attempts) has ended. If it has ended, it is pending again.
  /// Throws no_such_job_type, bad_request, too_large.
  ///
  /// A pending job gets the new priority and data. It keeps its position among jobs of that priority: without
  /// a time it keeps its own, a time in the past can only move it forward, and a time in the future replaces
  /// its own. Adding the same job again writes nothing.
  ///
  /// With a schedule, the job's time is the next tick; for a running job, the next tick after its current
  /// run. A job that has the same schedule keeps its time, and adding it again while it runs writes nothing
  /// either. Without a schedule, a periodic job becomes an ordinary one.
  Added add(kv::Transaction& tx, std::string_view type, std::optional<std::string_view> id,
            std::string_view data, const AddOptions& options);
  Added add(kv::Transaction& tx, std::string_view type, std::optional<std::string_view> id,
            std::string_view data) {
    return add(tx, type, id, data, AddOptions());
  }

  struct NewJob {
    std::optional<std::string> id;
    std::string_view data;
    AddOptions options{};
  };
  /// add() for several jobs. Throws kv::Error transaction_too_large as soon as the transaction is, not at its
  /// commit.
  std::vector<Added> add_all(kv::Transaction& tx, std::string_view type, std::span<const NewJob> jobs);

  /// Removes all rows of the job, and, for a type's own periodic job, the schedule in the settings. A worker
  /// that runs the job gets `halt` at its next call. Throws not_found.
  void remove(kv::Transaction& tx, std::string_view type, std::string_view id);

  /// Cancels a pending job. A running one is flagged: update() returns the flag to its worker, and the job
  /// does not run again unless it is resubmitted later. An ended job is not changed. Throws not_found.
  void cancel(kv::Transaction& tx, std::string_view type, std::string_view id);

  /// Like add() with a time, keeping the job's priority and, unless `data` is given, its data. A periodic job
  /// continues with its schedule afterwards. Throws not_found.
  void resubmit(kv::Transaction& tx, std::string_view type, std::string_view id,
                std::int64_t scheduled_at = 0, std::optional<std::string_view> data = std::nullopt);

  /// Called after the rows of a job were removed: records the change (job_metrics.h), and for a type's own
  /// periodic job removes the schedule in the settings.
  void removed(kv::Transaction& tx, const Job& job);

 private:
  struct Wanted;
  void check_declared(kv::Transaction& tx, std::string_view type);
  Added add_one(kv::Transaction& tx, std::string_view type, std::optional<std::string_view> id,
                std::string_view data, const AddOptions& options);
  Added put(kv::Transaction& tx, std::string_view type, std::optional<std::string_view> id,
            const Wanted& wanted);
  void set_schedule(kv::Transaction& tx, std::string_view type, const std::string& schedule);
  Added put_running(kv::Transaction& tx, Job& job, const Wanted& wanted);

  std::map<std::string, TypeSettings, std::less<>> own_types_;
};

}  // namespace divan::jobs
