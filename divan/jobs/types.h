// Jobs, types of jobs and their settings, as values.
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
/// Throws bad_request unless `name` is valid for a type or a job's id: UTF-8, 1 to kMaxNameBytes bytes that
/// do not begin with an underscore. `what` names it in the error: "type" or "id".
void check_name(std::string_view what, std::string_view name);
/// The largest data of a job, in bytes of JSON.
inline constexpr std::size_t kMaxDataBytes = 8'000'000;
/// The largest progress and error texts that are kept.
inline constexpr std::size_t kMaxProgressBytes = 10'000;
inline constexpr std::size_t kMaxErrorBytes = 2'000;
/// The most earlier attempts of a job that are kept.
inline constexpr std::int64_t kMaxHistory = 20;
/// The most jobs that one accept() may request.
inline constexpr std::size_t kMaxAcceptLimit = 1000;

enum class State {
  pending,    // waits until it is due and accepted
  running,    // was accepted; an attempt runs
  finished,   // ended with success
  failed,     // ended, since an attempt failed permanently or too many failed or were lost
  cancelled,  // ended by a request
};
inline constexpr State kStates[] = {State::pending, State::running, State::finished, State::failed,
                                    State::cancelled};

inline constexpr State kEndedStates[] = {State::finished, State::failed, State::cancelled};
inline bool has_ended(State state) { return state != State::pending && state != State::running; }

/// "pending", "running" and so on.
std::string_view state_name(State state);
std::optional<State> state_of(std::string_view name);

/// The settings of a type. The defaults are those of a new type.
struct TypeSettings {
  /// A running job without a registered worker becomes pending again if its attempt has not reported for this
  /// long.
  Duration timeout = std::chrono::seconds(30);
  /// The number of failed attempts after which the job fails permanently.
  std::int64_t max_attempts = 25;
  /// The number of lost attempts after which the job fails permanently; nullopt: no limit.
  std::optional<std::int64_t> max_lost = 10;
  /// The longest run of an attempt, even if its worker reports; nullopt: no limit.
  std::optional<Duration> max_runtime;
  /// The most jobs that run at a time, over all workers; nullopt: no limit.
  std::optional<std::int64_t> max_running;
  Duration backoff_min = std::chrono::seconds(1);
  Duration backoff_max = std::chrono::hours(1);
  /// How long ended jobs are kept.
  Duration retention = std::chrono::hours(24);
  /// How long failed jobs are kept; nullopt: `retention`.
  std::optional<Duration> retention_failed;
  /// If true, jobs can be added but are not accepted.
  bool paused = false;
  /// The schedule of the type's own periodic job, from Schedule::json(); empty: none.
  std::string schedule;
  /// How the server delivers the jobs, as JSON (deliver/settings.h); empty: workers accept them.
  std::string deliver;

  bool operator==(const TypeSettings&) const = default;

  /// How long jobs that ended in this state are kept.
  Duration retention_of(State ended) const {
    return ended == State::failed ? retention_failed.value_or(retention) : retention;
  }
};

/// Parses settings from a JSON object with members named as in TypeSettings. Times are in milliseconds;
/// optional members may be null; missing members have the values of `base`. Throws bad_request for unknown
/// members and values out of range; the members of `deliver` are not checked.
TypeSettings parse_settings(std::string_view json, const TypeSettings& base = {});
/// Parses settings from the store. Their schedule was checked, but may have a time zone that is unknown on
/// this machine.
TypeSettings stored_settings(std::string_view json);
std::string settings_json(const TypeSettings& settings);

/// The settings that a job may override.
inline constexpr std::string_view kJobLimits[] = {"timeout",     "max_attempts", "max_lost",
                                                  "backoff_min", "backoff_max",  "max_runtime"};
/// Checks a JSON object of such settings and returns its canonical form; empty if it has no members. Throws
/// bad_request.
std::string job_limits(std::string_view json);
/// The type's settings, overridden by the job's. `limits` is from job_limits().
TypeSettings with_limits(const TypeSettings& settings, std::string_view limits);

/// The outcome of an attempt.
enum class Outcome {
  finished,   // success
  failed,     // its worker has reported a failure, or its deadline has passed
  lost,       // its worker has ended or become silent
  released,   // it was returned to the queue, and does not count
  cancelled,  // the job was cancelled
};
/// "finished", "failed" and so on.
std::string_view outcome_name(Outcome outcome);

/// A job's header. Times are in milliseconds since 1970 (UTC); 0: none.
struct Job {
  std::string type;
  std::string id;
  State state = State::pending;
  std::int64_t priority = 0;      // lower runs first
  std::int64_t scheduled_at = 0;  // as requested; 0: at once
  // The earliest time of its next attempt, which determines its position in the queue. At first it is
  // `scheduled_at`, or the present if that is 0.
  std::int64_t due_at = 0;
  std::int64_t attempt = 0;   // number of its current or last attempt; released ones do not count
  std::int64_t failures = 0;  // failed attempts of the current run
  std::int64_t lost = 0;      // lost attempts of the current run
  std::string lock;           // of the running attempt
  std::int64_t epoch = 0;     // grows with every attempt: a fencing token
  // It was resubmitted while an attempt ran: it runs again after the current run.
  bool resubmit = false;
  std::int64_t resubmit_at = 0;  // time of that run; or kNextTick
  bool cancel = false;           // the running attempt should stop
  // The worker of the running attempt, or of the attempt that ended the job; may be empty.
  std::string worker_role;
  std::string worker_id;
  // Of a running job without an entry of its own: its worker's batch that has it (WorkerBatch), from 1 on.
  std::int64_t batch = 0;
  std::int64_t added_at = 0;
  std::int64_t started_at = 0;
  std::int64_t finished_at = 0;
  std::string progress;  // JSON, as reported by the running attempt
  std::string last_error;
  std::string schedule;       // of a periodic job, from Schedule::json()
  std::string limits;         // its own settings, from job_limits()
  std::int64_t deadline = 0;  // end of the running attempt if it has a `max_runtime`
  // Data in the header: JSON, of the current and the next run; empty: it has rows, or is {}.
  std::string data, next_data;
  std::int64_t data_chunks = 0;  // rows of its data
  std::int64_t next_chunks = 0;  // rows of the next run's data, or kSameData
  // Whether the slots of the current and the next run's data are swapped.
  bool swapped = false;
  // Rows of the result of its last finished run; 0: no result.
  std::int64_t result_chunks = 0;
  std::int64_t history = 0;  // rows of former attempts: history.h
  bool old_entry = false;    // its entry among the ended jobs has the form of header layout 3
  // The versionstamp of its entry among the running jobs that were accepted without a registered worker.
  std::optional<kv::Versionstamp> activity;
};

/// Makes a running job pending again in its former position.
void return_to_queue(Job& job);
/// Makes a job pending at `scheduled_at`, or, if that is 0, now, behind the jobs that are due already.
void make_pending(Job& job, std::int64_t scheduled_at, std::int64_t now);

/// In Job::next_chunks: the next run has the data that the current one leaves.
inline constexpr std::int64_t kSameData = -1;

/// In Job::resubmit_at: at the first tick after the current run has ended.
inline constexpr std::int64_t kNextTick = -1;

/// Identifies an attempt: the credentials of the worker that has accepted the job.
struct Attempt {
  std::string type;
  std::string id;
  std::string lock;
};

/// The error of a report about an attempt that has ended for any reason: the job no longer belongs to it.
/// `halt` over HTTP.
class LockLost : public Error {
 public:
  LockLost() : Error(409, "halt", "The attempt does not own the job any more.") {}
};
inline Error no_such_job_type(std::string_view type) {
  return {404, "no_such_job_type", "The job type `" + std::string(type) + "` is not declared."};
}

/// Parts of a job besides its header, as JSON texts.
struct JobParts {
  std::optional<std::string> data{};
  std::optional<std::string> result{};
  std::optional<std::string> history{};
};
/// The job as JSON for users.
std::string job_json(const Job& job, const JobParts& parts = {});

}  // namespace divan::jobs
