// The durable job queue, as its users and operators call it: types, adding, removing and reading jobs.
//
// Every function takes a transaction first, so that a job and the documents that it concerns are written
// atomically. A committed job runs at least once. The writes of a worker in the transaction of its update()
// or finish() are committed at most once, and only while the attempt owns the job: both check the attempt's
// lock, which becomes invalid when the job is reclaimed, removed or accepted by another worker. attempts.h is
// the workers' side.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "divan/jobs/observer.h"
#include "divan/jobs/schedule.h"
#include "divan/jobs/types.h"
#include "divan/workers/registry.h"

namespace divan::jobs {

class JobKey;

/// Thread-safe. The registry, clock and rng must outlive it.
class Queue {
 public:
  /// Registers itself with the registry: when a registration ends, the worker's jobs are reclaimed
  /// (worker_jobs.h).
  Queue(workers::Registry& registry, const Clock& clock, Rng& rng);

  /// Sets how many jobs of a worker that has ended are reclaimed in one transaction (worker_jobs.h): 1 to
  /// 250, so that the transaction is never too large. Call during start-up only.
  void set_reclaimed_at_once(std::size_t jobs) { reclaimed_at_once_ = jobs; }
  std::size_t reclaimed_at_once() const { return reclaimed_at_once_; }

  /// Makes a type the server's own: it cannot be removed, and is declared with these settings if a job is
  /// added while it is missing. Call during start-up only.
  void set_own_type(std::string type, const TypeSettings& settings) {
    own_types_.insert_or_assign(std::move(type), settings);
  }

  // Types. A type is declared before its jobs are added.

  /// A schedule in the settings creates the type's job `_periodic`, which is changed and removed with it.
  void set_type(kv::Transaction& tx, std::string_view type, const TypeSettings& settings);
  /// Throws no_such_job_type.
  TypeSettings type(kv::Transaction& tx, std::string_view type);
  std::optional<TypeSettings> find_type(kv::Transaction& tx, std::string_view type);
  std::vector<std::string> types(kv::Transaction& tx);
  /// Removes the type, with its jobs if `force`. Throws conflict (409) if it has jobs and `force` is false,
  /// and forbidden (403) if it is the server's own.
  void remove_type(kv::Transaction& tx, std::string_view type, bool force);
  /// The number of jobs by state. Reads counters, not jobs.
  std::map<State, std::int64_t> counts(kv::Transaction& tx, std::string_view type);

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
  /// add() for several jobs.
  std::vector<Added> add_all(kv::Transaction& tx, std::string_view type, std::span<const NewJob> jobs);

  /// Prefetches the rows of jobs that will be read or changed.
  static void prefetch(kv::Transaction& tx, std::string_view type, std::span<const std::string_view> ids);

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

  std::optional<Job> find(kv::Transaction& tx, std::string_view type, std::string_view id,
                          kv::Isolation isolation = kv::Isolation::serializable);
  /// Like find(), but reports a damaged job and returns nullopt. For reading one job among many.
  std::optional<Job> find_or_report(kv::Transaction& tx, std::string_view type, std::string_view id,
                                    kv::Isolation isolation = kv::Isolation::serializable);
  std::string data(kv::Transaction& tx, const Job& job);

  /// The result of the job's last finished run; nullopt if there is none.
  std::optional<std::string> result(kv::Transaction& tx, const Job& job);

  /// A page of list_jobs() that begins with `start_id`.
  std::vector<Job> list(kv::Transaction& tx, std::string_view type, std::optional<State> state,
                        std::string_view start_id, std::size_t limit);

  /// The running jobs of a type by id. The cost does not depend on the number of other jobs.
  std::vector<Job> running(kv::Transaction& tx, std::string_view type, std::size_t limit);

  /// A watch on every change of the job's header; null if the store has too many watches
  /// (Transaction::try_watch).
  std::shared_ptr<kv::Watch> watch(kv::Transaction& tx, std::string_view type, std::string_view id);

  struct Pruned {
    std::size_t jobs = 0;
    std::optional<std::string> next{};  // `begin` of the next call; nullopt: there are no more
  };
  /// Removes those of the first `limit` ended jobs from `begin` on whose retention has passed. `begin` is
  /// empty or the `next` of an earlier call.
  Pruned prune(kv::Transaction& tx, std::string_view type, std::size_t limit, std::string_view begin = {});

  /// Logs that a row is damaged, once per process and row. Thread-safe.
  void report_damage(std::string_view key, std::string_view what);

  /// Upgrades the entries of ended jobs from header layout 3, where lists by state and prune() do not find
  /// them: those of the first `limit` from `begin` on. `begin` and the result are as for prune().
  Pruned upgrade_ended(kv::Transaction& tx, std::string_view type, std::size_t limit,
                       std::string_view begin = {});

  /// Called after the rows of a job were removed: notifies the observer, and for a type's own periodic job
  /// removes the schedule in the settings.
  void removed(kv::Transaction& tx, const Job& job);

  workers::Registry& registry() { return registry_; }
  const Clock& clock() const { return clock_; }
  Rng& rng() { return rng_; }
  /// The observer of changes of jobs.
  Observer& observer() { return observer_; }

 private:
  struct Wanted;
  void check_declared(kv::Transaction& tx, std::string_view type);
  Added add_one(kv::Transaction& tx, std::string_view type, std::optional<std::string_view> id,
                std::string_view data, const AddOptions& options);
  Added put(kv::Transaction& tx, std::string_view type, std::optional<std::string_view> id,
            const Wanted& wanted);
  void set_schedule(kv::Transaction& tx, std::string_view type, const std::string& schedule);
  Added put_running(kv::Transaction& tx, Job& job, const Wanted& wanted);
  void erase(kv::Transaction& tx, const Job& job);
  std::optional<Job> of_entry(kv::Transaction& tx, std::string_view type, std::string_view key,
                              const JobKey& prefix);

  workers::Registry& registry_;
  const Clock& clock_;
  Rng& rng_;
  Observer observer_;
  std::size_t reclaimed_at_once_ = 250;
  std::mutex damaged_mutex_;
  std::set<std::string, std::less<>> damaged_;  // keys already reported
  std::map<std::string, TypeSettings, std::less<>> own_types_;
};

/// Makes a running job pending again in its former position.
void return_to_queue(Job& job);
/// Makes a job pending at `scheduled_at`, or, if that is 0, now, behind the jobs that are due already.
void make_pending(Job& job, std::int64_t scheduled_at, std::int64_t now);

}  // namespace divan::jobs
