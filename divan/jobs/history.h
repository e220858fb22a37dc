// What became of a job's attempts. The header of a job tells of the present or the last one; the ones before
// are kept beside it, written when an attempt ends after which the job goes on. So a job that just runs has
// none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "divan/jobs/types.h"
#include "divan/kv/store.h"

namespace divan::jobs {

/// Attempts of a job that are kept beside its header.
inline constexpr std::int64_t kMaxHistory = 20;

/// An attempt at a job. Times are in milliseconds since 1970.
struct PastAttempt {
  std::int64_t attempt = 0;
  std::int64_t epoch = 0;
  std::int64_t started_at = 0;
  std::optional<std::int64_t> ended_at;  // nothing: it runs
  std::string worker_role;               // the worker that ran it, if it had one
  std::string worker_id;
  std::optional<Outcome> outcome;  // nothing: it runs
  std::string error;
};

/// Writes down the attempt that `job` runs or ran last; to be called before `changed`, which is the same job,
/// is linked. The oldest of more than kMaxHistory goes.
void remember_attempt(kv::Transaction& tx, const Job& job, Job& changed, Outcome outcome,
                      std::int64_t ended_at, std::string_view error = {});

/// The same of a job that has ended and is asked for again.
void remember_last_attempt(kv::Transaction& tx, Job& job);

/// All attempts that are known, the oldest first, the present or last one included.
std::vector<PastAttempt> attempts_of(kv::Transaction& tx, const Job& job);

/// As a JSON array.
std::string history_json(const std::vector<PastAttempt>& attempts);

/// An attempt from its row. Throws an internal error if it is damaged.
PastAttempt decode_attempt(std::int64_t epoch, std::string_view row);

}  // namespace divan::jobs
