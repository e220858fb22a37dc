// What a job is, and what a type of jobs is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "divan/base/clock.h"
#include "divan/base/error.h"
#include "divan/kv/tuple_versionstamp.h"

namespace divan::jobs {

/// The longest type and job id, in bytes.
inline constexpr std::size_t kMaxNameBytes = 1000;
/// The largest data of a job, in bytes of JSON.
inline constexpr std::size_t kMaxDataBytes = 8'000'000;
/// The largest progress and error texts that are kept.
inline constexpr std::size_t kMaxProgressBytes = 10'000;
inline constexpr std::size_t kMaxErrorBytes = 2'000;
/// Jobs that one accept() may take.
inline constexpr std::size_t kMaxAcceptLimit = 1000;

enum class State { pending, running, finished, failed, cancelled };
inline constexpr State kStates[] = {State::pending, State::running, State::finished, State::failed,
                                    State::cancelled};

inline constexpr State kEndedStates[] = {State::finished, State::failed, State::cancelled};
inline bool has_ended(State state) { return state != State::pending && state != State::running; }

/// "pending", "running" and so on.
std::string_view state_name(State state);
std::optional<State> state_of(std::string_view name);

/// The settings of a type. The defaults are what a new type gets.
struct TypeSettings {
  /// A running job becomes pending again if its attempt has reported nothing for so long.
  Duration timeout = std::chrono::seconds(30);
  /// Failed attempts after which the job has failed for good.
  std::int64_t max_attempts = 25;
  /// Lost attempts after which it has; nullopt: any number.
  std::optional<std::int64_t> max_lost = 10;
  /// How long an attempt may run, even if its worker reports; nullopt: any time.
  std::optional<Duration> max_runtime;
  /// How many jobs may run at once, over all workers; nullopt: any number.
  std::optional<std::int64_t> max_running;
  Duration backoff_min = std::chrono::seconds(1);
  Duration backoff_max = std::chrono::hours(1);
  /// How long ended jobs are kept.
  Duration retention = std::chrono::hours(24);
  /// How long failed jobs are kept; nullopt: `retention`.
  std::optional<Duration> retention_failed;
  /// Jobs can be added, but none is accepted.
  bool paused = false;
  /// The schedule of the type's own periodic job, as Schedule::json() writes it; empty: none.
  std::string schedule;

  bool operator==(const TypeSettings&) const = default;

  /// How long jobs that ended so are kept.
  Duration retention_of(State ended) const {
    return ended == State::failed ? retention_failed.value_or(retention) : retention;
  }
};

/// Reads settings from a JSON object with members named as in TypeSettings; times are in milliseconds, and
/// those that may be absent may be null. What is missing is as in `base`. Throws bad_request for unknown
/// members and values out of range.
TypeSettings parse_settings(std::string_view json, const TypeSettings& base = {});
/// Settings as they are in the store: their schedule was checked, and may be of a time zone that this machine
/// does not know.
TypeSettings stored_settings(std::string_view json);
std::string settings_json(const TypeSettings& settings);

/// The settings that a job may have of its own, instead of its type's.
inline constexpr std::string_view kJobLimits[] = {"timeout",     "max_attempts", "max_lost",
                                                  "backoff_min", "backoff_max",  "max_runtime"};
/// A JSON object with some of them, in the form in which a job keeps them: empty if there are none. Throws
/// bad_request.
std::string job_limits(std::string_view json);
/// What holds for a job of a type with these settings. `limits` is from job_limits().
TypeSettings with_limits(const TypeSettings& settings, std::string_view limits);

/// How an attempt ended.
enum class Outcome { finished, failed, lost, released, cancelled };
/// "finished", "failed" and so on.
std::string_view outcome_name(Outcome outcome);

/// A job, without its data. Times are in milliseconds since 1970 (UTC), 0 where there is none.
struct Job {
  std::string type;
  std::string id;
  State state = State::pending;
  std::int64_t priority = 0;      // lower runs first
  std::int64_t scheduled_at = 0;  // as asked for: 0 is at once
  // When it may run, and its place in the queue: `scheduled_at` if that is a time.
  std::int64_t due_at = 0;
  std::int64_t attempt = 0;   // how often it was accepted and not released
  std::int64_t failures = 0;  // how many attempts of its run failed
  std::int64_t lost = 0;      // how many attempts of its run were lost
  std::string lock;           // of the attempt that runs
  std::int64_t epoch = 0;     // grows with every attempt: a fencing token
  // Asked for again while an attempt ran: when the present run has ended, to run.
  bool resubmit = false;
  std::int64_t resubmit_at = 0;  // then, with the next data; or kNextTick
  bool cancel = false;           // the running attempt is asked to stop
  std::string worker_role;       // the worker that runs it, or ran it to the end, if it has one
  std::string worker_id;
  std::int64_t added_at = 0;
  std::int64_t started_at = 0;
  std::int64_t finished_at = 0;
  std::string progress;  // JSON, as the running attempt tells it
  std::string last_error;
  std::string schedule;          // of a periodic job, as Schedule::json() writes it
  std::string limits;            // its own settings, as job_limits() writes them
  std::int64_t deadline = 0;     // when the attempt that runs is ended, if it has a `max_runtime`
  std::int64_t data_chunks = 0;  // rows that its data take; {} takes none
  std::int64_t next_chunks = 0;  // the same for the data of the next run, or kSameData
  // Which rows are those of the present run's data, and which of the next one's.
  bool swapped = false;
  // Rows that the result of its last finished run takes; 0: there is none.
  std::int64_t result_chunks = 0;
  std::int64_t history = 0;  // rows of former attempts: history.h
  bool old_entry = false;    // its entry among the ended jobs is one of header layout 3
  // Of its entry among the running jobs without a worker.
  std::optional<kv::Versionstamp> activity;
};

/// In Job::next_chunks: the next run's data are what the present one leaves.
inline constexpr std::int64_t kSameData = -1;

/// In Job::resubmit_at: at the tick of its schedule that comes when the present run has ended.
inline constexpr std::int64_t kNextTick = -1;

/// The attempt at a job that a worker has accepted: what it needs to speak for it.
struct Attempt {
  std::string type;
  std::string id;
  std::string lock;
};

/// The job is not this attempt's any more: it was reclaimed, removed or given to somebody else.
inline Error halt(std::string reason = "The job is not this attempt's any more.") {
  return {409, "halt", std::move(reason)};
}
inline Error no_such_job_type(std::string_view type) {
  return {404, "no_such_job_type", "No job type `" + std::string(type) + "` is declared."};
}

/// What a user may see of a job besides its header: JSON texts.
struct JobParts {
  std::optional<std::string> data{};
  std::optional<std::string> result{};
  std::optional<std::string> history{};
};
/// The job as JSON for users.
std::string job_json(const Job& job, const JobParts& parts = {});

}  // namespace divan::jobs
