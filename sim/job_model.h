// Models of jobs: the expected state after the committed steps (steps.h), by the documented rules, without
// regard to how the queue implements them.
#pragma once

#include "divan/jobs/types.h"
#include "sim/steps.h"

namespace divan::sim {

using jobs::has_ended;

/// One job, from when it is added until it is removed or pruned. Times are in milliseconds by the wall clock
/// of the process that committed.
struct JobModel {
  jobs::State state = jobs::State::pending;
  std::string data;
  std::optional<std::string> progress;  // as reported by the current attempt
  std::int64_t priority = 0;            // lower runs first
  // While it is pending: its due time lies between these.
  std::int64_t earliest = 0;
  std::int64_t latest = 0;
  std::optional<std::int64_t> asked_for;  // the requested time, if it is pending because of that
  struct Next {
    std::optional<std::string> data;  // nullopt: those that its current run leaves
    std::int64_t scheduled_at = 0;
    bool by_schedule = false;  // at the next tick after its current run has ended
  };
  std::optional<Next> next;  // it runs again after its current run
  bool cancel = false;
  std::string schedule;                 // empty: none
  std::int64_t tick = 0;                // of the current occurrence; 0: it was
                                        // requested to run at once
  std::int64_t failures = 0;            // since the last success, or since it was added
  std::int64_t lost = 0;                // attempts of the current run
  std::string limits{};                 // its own settings, as stored
  std::optional<std::string> result{};  // of its last finished run since it was
                                        // added, or resubmitted after its end
  std::int64_t attempts = 0;            // since it was added, or resubmitted after its end, except
                                        // those that were released
  std::int64_t started_at = 0;          // of the last attempt, released or not

  /// Applies the step to the job; nullopt is a job that does not exist. The step must be allowed: its attempt
  /// has the job, and the job exists if it must.
  static void apply(const Step& step, const Commit& commit, const jobs::TypeSettings& settings,
                    std::optional<JobModel>& model);

  /// Returns true if the step requests the state that the job has already; then the job is not changed.
  bool is_asked_for_again(const Step& step, const Commit& commit) const;

  void accepted(std::int64_t at);
  /// Returns true if the current occurrence was not begun before the next tick, by a clock that shows `now`,
  /// and must be skipped then.
  bool is_missed(std::int64_t now) const;
  /// It waits for the first tick after the current one and after the time of the commit.
  void wait_for_next_tick(const Commit& commit);
  /// Its attempt ended without a result: it was released, or lost. The job is due after the delay, in
  /// milliseconds, if there is one.
  void taken_back(const Commit& commit, bool lost, const jobs::TypeSettings& settings,
                  std::optional<std::int64_t> delay = std::nullopt);
  /// Its attempt failed. The next one is due after the delay, if there is one (in milliseconds; -1: never).
  void failed(const Commit& commit, const jobs::TypeSettings& settings,
              std::optional<std::int64_t> delay = std::nullopt);

 private:
  void ask(const Step& step, const Commit& commit);
  void ask_for_another_time(std::int64_t time, const Commit& commit);
  void run_ends(jobs::State state_then, const Commit& commit);
};

}  // namespace divan::sim
