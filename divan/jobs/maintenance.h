// Maintenance of the job queue: silent jobs without a registered worker are reclaimed, overdue attempts are
// ended, and ended jobs are pruned.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "divan/base/worker_loop.h"
#include "divan/jobs/queue.h"
#include "divan/jobs/watched_types.h"

namespace divan::jobs {

/// Ends attempts whose deadline has passed by the wall clock, reclaims silent jobs that were accepted without
/// a registered worker, and prunes ended jobs. Such a running job has an entry in its type's list of
/// activity, ordered by the jobs' last reports. If this process observes that the entry has not moved for the
/// timeout of the job or its type, the job becomes pending again. (Jobs of a registered worker are reclaimed
/// when its registration ends, see workers::Monitor. Only those that the ending transaction left are
/// reclaimed here, see worker_jobs.h.) Processes with the background work `jobs` have one each; any number
/// may run on the same store. Thread-safe.
class Maintenance {
 public:
  Maintenance(Queue& queue, kv::Database& store, const Clock& clock)
      : queue_(queue), store_(store), clock_(clock), loop_(clock, "jobs", [this] { return step(); }) {}
  Maintenance(const Maintenance&) = delete;
  Maintenance& operator=(const Maintenance&) = delete;

  /// Starts the thread that calls step() when there is something to do.
  void start() { loop_.start(); }

  /// Ends the thread, and a step that is under way after its present transaction. Does not wait; the
  /// destructor does.
  void stop() { loop_.stop(); }

  /// Scans the types that have such jobs or ended jobs; the others cost nothing. Returns when the next step
  /// is due. An error of one type is logged, and the other types are maintained nevertheless.
  MonotonicTime step();

 private:
  // An entry of activity, and for how long this process has seen it unchanged.
  struct Observation {
    kv::Versionstamp activity;
    Duration silence{};
    Duration timeout{};
  };
  struct ObservedJobs {
    MonotonicTime read_at{};
    std::map<std::string, Observation, std::less<>> jobs;  // by id
  };

  // Returns how long it is until the first of the other jobs may have to be reclaimed.
  Duration reclaim_silent(const std::string& type, Duration timeout);
  std::optional<Duration> activity_timeout(std::string_view key, std::string_view value);
  // Returns how long it is until the next deadline.
  Duration end_overdue_attempts(const std::string& type);
  // Converts rows that an earlier version of this program has written.
  void upgrade(const std::vector<std::string>& types, MonotonicTime until);
  // Prunes until `until`, the time of the next step. Returns true if nothing is left to be pruned.
  bool prune(MonotonicTime until);
  // Calls `batch(tx, begin)`, which returns where the next call begins, until all is done, `until` has passed
  // or the thread is stopping. Returns true if all is done.
  template <class Batch>
  bool run_batches(MonotonicTime until, const Batch& batch);
  bool is_stopping() const { return loop_.stopped(); }
  // Returns the types that have entries, for each of the kinds.
  using TypesByKind = std::map<std::string, std::vector<std::string>, std::less<>>;
  TypesByKind types_by_kind(std::initializer_list<std::string_view> kinds);
  // Calls `fn(type, settings)` for each of the types.
  template <class Fn>
  void for_each_type(const std::vector<std::string>& types, Fn&& fn);

  Queue& queue_;
  kv::Database& store_;
  const Clock& clock_;
  // One step at a time; protects the members below.
  Mutex stepping_{MutexRank::job_maintenance, "Maintenance::stepping_"};
  WatchedTypes types_{queue_, store_};
  MonotonicTime next_prune_{};
  Duration interval_{};  // from the last step to the next
  std::map<std::string, ObservedJobs, std::less<>> observed_;

  WorkerLoop loop_;  // calls step()
};

}  // namespace divan::jobs
