// What a job ought to be: what the steps done so far (steps.h) make of it by the rules that the queue's users
// go by, and nothing of how the queue does it.
#pragma once

#include "divan/jobs/types.h"
#include "sim/steps.h"

namespace divan::sim {

using jobs::has_ended;

/// One job, from its being added until it is removed or pruned. Times are in milliseconds by the wall clock
/// of the process that acted: each goes by its own.
struct JobModel {
  jobs::State state = jobs::State::pending;
  std::string data;
  std::optional<std::string> progress;  // as the present attempt tells it, if it did
  std::int64_t priority = 0;            // of its place among the pending ones
  // While it is pending: it is due within these.
  std::int64_t earliest = 0;
  std::int64_t latest = 0;
  std::optional<std::int64_t> asked_for;  // the time that a user gave, if it is pending because of that
  struct Next {
    std::optional<std::string> data;  // nothing: those that its present run leaves
    std::int64_t scheduled_at = 0;
    bool by_schedule = false;  // at the tick that comes when the present run has ended
  };
  std::optional<Next> next;  // flagged to run again when its run has ended
  bool cancel = false;
  std::string schedule;                 // empty: none
  std::int64_t tick = 0;                // of the present occurrence, as the store has it; 0:
                                        // it was asked for at once
  std::int64_t failures = 0;            // since the last success, or since it was added
  std::int64_t lost = 0;                // attempts of the present run
  std::string limits{};                 // its own settings, as the store has them
  std::optional<std::string> result{};  // of its last finished run, since it was
                                        // asked for when it had ended
  std::int64_t attempts = 0;            // since it was added, or asked for again when it had ended;
                                        // without those that were released
  std::int64_t started_at = 0;          // of the last one, released or not

  /// Makes of the job what the step does to it; `nothing` is a job that is not there. The step must be one
  /// that is allowed: the attempt that does it has the job, and what must be there is.
  static void apply(const Step& step, const Commit& commit, const jobs::TypeSettings& settings,
                    std::optional<JobModel>& model);

  /// Whether a user asks for what is so already; then the job stays as it is.
  bool is_asked_for_again(const Step& step, const Commit& commit) const;

  void accepted(std::int64_t at);
  /// Whether nobody began the present occurrence before the tick after it, by a clock that shows `now`, and
  /// it is to be skipped then.
  bool is_missed(std::int64_t now) const;
  /// It waits for the tick after the present one and after the time of the commit.
  void wait_for_next_tick(const Commit& commit);
  /// Its attempt is over, and nobody said that it succeeded or failed: it was given back, or lost. With a
  /// delay, in milliseconds, it waits for so long.
  void taken_back(const Commit& commit, bool lost, const jobs::TypeSettings& settings,
                  std::optional<std::int64_t> delay = std::nullopt);
  /// Its attempt failed. The next one comes after the delay, if that is given (in milliseconds; -1: never).
  void failed(const Commit& commit, const jobs::TypeSettings& settings,
              std::optional<std::int64_t> delay = std::nullopt);

 private:
  void ask(const Step& step, const Commit& commit);
  void ask_for_another_time(std::int64_t time, const Commit& commit);
  void run_ends(jobs::State state_then, const Commit& commit);
};

}  // namespace divan::sim
