// Invariants of jobs.
//
// Each job has a model (job_model.h). A commit may change a job only as its recorded steps say, or as the
// queue does by itself: accept a pending job, reclaim one whose worker is gone or silent, prune one that has
// ended. The rows of the store must agree with the model.
#pragma once

#include <set>

#include "sim/job_model.h"
#include "sim/job_rows.h"

namespace divan::sim {

class JobInvariants final : public Invariant {
 public:
  using Name = JobName;

  JobInvariants(Engine& engine) : engine_(engine), world_(engine.world) {}

  void check(const Commit& commit, const Rows& rows) override;

  /// Must be called before the type has jobs.
  void declare(const std::string& type, const jobs::TypeSettings& settings) { types_[type] = settings; }

  /// Fails if an attempt has received something else than what is stored.
  void check_given(const jobs::Job& given, std::string_view data);
  /// Returns a job that should have been pruned before `wall_ms`.
  std::optional<Name> kept_too_long(std::int64_t wall_ms) const;
  /// Returns the jobs that have not ended.
  std::vector<jobs::Job> open() const;
  /// Returns a periodic job that has not ended and has not run for a tick since then.
  std::optional<Name> stuck_since(MonotonicTime since) const;
  bool is_there(const Name& name) const;
  /// The version of the job's last change; 0 if it never existed.
  kv::Version last_change(const Name& name) const;

 private:
  struct Seen {
    std::optional<jobs::Job> job;
    std::optional<JobModel> model;
    std::set<std::string> entries;
    std::set<std::string> deadlines;  // entries of its deadline
    std::set<std::string> locks;      // of all its attempts
    std::int64_t epoch = INT64_MIN;   // of the last attempt
    std::int64_t finishes = 0;
    std::int64_t finished_tick = 0;  // the last tick of its schedule for which it finished
    MonotonicTime finished_at{};     // in true time
    MonotonicTime alive_at{};        // the last heartbeat of the running attempt,
                                     // in true time
    std::string alive_limits;        // its own settings at that time
    kv::Version changed = 0;
    MonotonicTime changed_at{};
  };
  struct Touched {
    std::set<Name> jobs;
    std::set<Name> pending;  // with a new entry among the pending ones
    std::set<std::string> woken;
    std::set<std::string> types;  // with other settings
    std::set<Name> workers;       // role and id of rows that changed
    std::set<Name> not_left;      // workers without jobs that remain to be reclaimed
  };

  Touched collect(const Commit& commit);
  void clear_type(const std::string& type, Touched& touched, std::map<Name, std::vector<Step>>& steps);
  void check_job(const Name& name, const std::vector<Step>& steps, const Commit& commit,
                 const Touched& touched, const Rows& rows);
  void check_times(const Name& name, const Seen& seen, const std::optional<jobs::Job>& now,
                   const Commit& commit);
  void check_attempt(const Name& name, Seen& seen, const std::optional<jobs::Job>& now);
  void check_batches(const Rows& rows);
  void check_entries(const Name& name, const Seen& seen, const std::optional<jobs::Job>& now,
                     const Rows& rows);
  // Compares accepted jobs, as they were before, with those that were not accepted: they must be first.
  void check_order(const std::vector<jobs::Job>& accepted, const Commit& commit);
  // Fails if more jobs of a type run than may, unless they ran before its limit was lowered.
  void check_limit(const std::vector<jobs::Job>& accepted);
  void check_counts(const std::string& type, const Rows& rows);
  void apply(const Name& name, const Step& step, const Commit& commit, Seen& seen);
  // Updates the model with what the queue did by itself; `by_itself`: no step was recorded.
  void follow(const Name& name, Seen& seen, const std::optional<jobs::Job>& now, bool by_itself,
              const Commit& commit, const Touched& touched);
  // Its occurrence was skipped.
  void follow_skipping(const Name& name, Seen& seen, const Commit& commit);
  void check_tick(const Name& name, Seen& seen);
  void learn_ticks(const Name& name, Seen& seen, const std::optional<jobs::Job>& now);
  void follow_pruning(const Name& name, Seen& seen, const Commit& commit);
  // Fails if a running job has a worker that is neither registered nor ended with jobs to be reclaimed.
  void check_worker_jobs(const Touched& touched, const Rows& rows);
  void follow_taking_back(const Name& name, Seen& seen, const std::optional<jobs::Job>& now,
                          const Commit& commit, const Touched& touched);
  // Returns true if it was ended because its attempt ran too long.
  bool is_overdue(const Seen& seen, const std::optional<jobs::Job>& now, const Commit& commit) const;
  void compare(const Name& name, const Seen& seen, const std::optional<jobs::Job>& now, const Rows& rows);
  void compare_pending(const Name& name, const Seen& seen, const jobs::Job& now);
  void check_nothing_left(const Name& name, const Seen& seen, const Rows& rows);
  void fail(const Name& name, const std::string& what);

  Engine& engine_;
  World& world_;
  std::map<std::string, jobs::TypeSettings> types_;
  std::map<Name, Seen> jobs_;
  std::map<std::string, std::map<jobs::State, std::int64_t>> counts_;
  std::map<Name, kv::Version> left_;  // workers that ended with jobs, and when
};

}  // namespace divan::sim
