// The durable job queue, as its users and operators call it: types, adding, removing, looking.
//
// Every function takes a transaction first, so that a job and what it is about are written together or not at
// all. A committed job runs at least once. What a worker writes in the transaction of its update() or
// finish() happens at most once and only while the attempt is its own: both check the attempt's lock, and a
// lock ends when the job is reclaimed, removed or accepted by somebody else. (attempts.h is the workers'
// side.)
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
  /// Registers itself with the registry: whoever stops being a worker has its jobs reclaimed (worker_jobs.h).
  Queue(workers::Registry& registry, const Clock& clock, Rng& rng);

  /// How many jobs of a worker that has ended are reclaimed in one transaction (worker_jobs.h). 1 to 250, so
  /// that it is never too large; for start-up.
  void set_reclaimed_at_once(std::size_t jobs) { reclaimed_at_once_ = jobs; }
  std::size_t reclaimed_at_once() const { return reclaimed_at_once_; }

  /// Makes a type the server's own: it cannot be removed, and is declared with these settings when a job is
  /// added and it is missing. For start-up.
  void set_own_type(std::string type, const TypeSettings& settings) {
    own_types_.insert_or_assign(std::move(type), settings);
  }

  // Types. A type is declared before its jobs are added.

  /// A schedule in the settings is that of the job `_periodic` of the type, which comes, changes and goes
  /// with it.
  void set_type(kv::Transaction& tx, std::string_view type, const TypeSettings& settings);
  /// Throws no_such_job_type.
  TypeSettings type(kv::Transaction& tx, std::string_view type);
  std::optional<TypeSettings> find_type(kv::Transaction& tx, std::string_view type);
  std::vector<std::string> types(kv::Transaction& tx);
  /// Removes the type; with its jobs if `force`, else throws conflict (409) while it has any. Throws
  /// forbidden (403) if it is the server's own.
  void remove_type(kv::Transaction& tx, std::string_view type, bool force);
  /// Jobs by state. Reads counters, not jobs.
  std::map<State, std::int64_t> counts(kv::Transaction& tx, std::string_view type);

  // Jobs.

  struct AddOptions {
    // Milliseconds since 1970; 0: at once. Without it a new job runs at once, and a pending one keeps its
    // time.
    std::optional<std::int64_t> scheduled_at = {};
    std::int64_t priority = 0;              // lower runs first
    std::optional<Schedule> schedule = {};  // makes it a periodic job; then there is no `scheduled_at`
    std::string limits = {};                // settings of its own, from job_limits()
  };
  struct Added {
    std::string id;
    bool created;  // false: the job was there
  };
  /// Adds a job; without an id it gets a UUID. A job with this id that is running is flagged to run again,
  /// with these data, when its present run has ended, which may take further attempts; one that has ended is
  /// pending again. Throws no_such_job_type, bad_request, too_large.
  ///
  /// A pending job gets the priority and data. It keeps its place among jobs of that priority: without a time
  /// it keeps its own, a time that has passed moves it forward at most, and a time in the future is its new
  /// one. Adding the same again writes nothing.
  ///
  /// With a schedule, the job's time is the next tick; of a running one, after its present run. One that has
  /// the same schedule keeps its time, and adding the same again to it while it runs writes nothing either.
  /// Without one, a periodic job is so no more.
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
  /// add() for many.
  std::vector<Added> add_all(kv::Transaction& tx, std::string_view type, std::span<const NewJob> jobs);

  /// Says on a remote store that these jobs will be read or changed.
  static void prefetch(kv::Transaction& tx, std::string_view type, std::span<const std::string_view> ids);

  /// Clears every trace of the job, and, of a type's own periodic job, the schedule in the settings; whoever
  /// runs it gets `halt` at its next call. Throws not_found.
  void remove(kv::Transaction& tx, std::string_view type, std::string_view id);

  /// A pending job is cancelled; a running one is flagged, which its worker reads in the answer of update(),
  /// and does not run again, unless that is asked for after this. Ended ones stay as they are. Throws
  /// not_found.
  void cancel(kv::Transaction& tx, std::string_view type, std::string_view id);

  /// As add() at a time, with the priority and, unless `data` are given, the data that the job has. A
  /// periodic job goes on with its schedule after that. Throws not_found.
  void resubmit(kv::Transaction& tx, std::string_view type, std::string_view id,
                std::int64_t scheduled_at = 0, std::optional<std::string_view> data = std::nullopt);

  std::optional<Job> find(kv::Transaction& tx, std::string_view type, std::string_view id,
                          kv::Isolation isolation = kv::Isolation::serializable);
  /// The same of one job among many: a damaged one is reported, and is none.
  std::optional<Job> find_whole(kv::Transaction& tx, std::string_view type, std::string_view id,
                                kv::Isolation isolation = kv::Isolation::serializable);
  std::string data(kv::Transaction& tx, const Job& job);

  /// The result of the job's last finished run; nullopt if there is none.
  std::optional<std::string> result(kv::Transaction& tx, const Job& job);

  /// The first jobs of a list that begins with `start_id`, in the order of list_jobs().
  std::vector<Job> list(kv::Transaction& tx, std::string_view type, std::optional<State> state,
                        std::string_view start_id, std::size_t limit);

  /// The running jobs of a type, in the order of their ids; cheap however many others there are.
  std::vector<Job> running(kv::Transaction& tx, std::string_view type, std::size_t limit);

  /// A watch on every change of the job's header; null if the store has too many (Transaction::try_watch).
  std::shared_ptr<kv::Watch> watch(kv::Transaction& tx, std::string_view type, std::string_view id);

  struct Pruned {
    std::size_t jobs = 0;
    std::optional<std::string> next{};  // there may be more from here on
  };
  /// Removes jobs that ended longer ago than their type keeps them, of the first `limit` from `begin` on.
  /// `begin` is empty or what an earlier call returned as `next`.
  Pruned prune(kv::Transaction& tx, std::string_view type, std::size_t limit, std::string_view begin = {});

  /// Logs that a row is damaged, once in the life of this process. Thread-safe.
  void report_damage(std::string_view key, std::string_view what);

  /// Moves entries of ended jobs, of the first `limit` from `begin` on, from where header layout 3 had them:
  /// lists by state and prune() do not find them there. `begin` and the result are as for prune().
  Pruned upgrade_ended(kv::Transaction& tx, std::string_view type, std::size_t limit,
                       std::string_view begin = {});

  /// What follows when the rows of a job are gone: observers hear of it, and a type's own periodic job takes
  /// the schedule in the settings with it.
  void removed(kv::Transaction& tx, const Job& job);

  workers::Registry& registry() { return registry_; }
  const Clock& clock() const { return clock_; }
  Rng& rng() { return rng_; }
  /// Who is told what happens to jobs.
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
  std::set<std::string, std::less<>> damaged_;  // keys that were reported
  std::map<std::string, TypeSettings, std::less<>> own_types_;
};

/// Nobody runs the job any more: it is pending, in the place that it had.
void put_back(Job& job);
/// The same, and due at another time: `scheduled_at`, or, with 0, now and behind what is due already.
void make_pending(Job& job, std::int64_t scheduled_at, std::int64_t now);

}  // namespace divan::jobs
