// The history of a job's attempts. The job's header describes the current or last attempt; earlier ones have
// rows of their own, which are written when an attempt ends after which the job continues. So a job that
// succeeds at its first attempt has none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "divan/jobs/types.h"
#include "divan/kv/store.h"

namespace divan::jobs {

/// An attempt at a job. Times are in milliseconds since 1970.
struct PastAttempt {
  std::int64_t attempt = 0;
  std::int64_t epoch = 0;
  std::int64_t started_at = 0;
  std::optional<std::int64_t> ended_at;  // nullopt: it is running
  std::string worker_role;               // the worker that ran it; may be empty
  std::string worker_id;
  std::optional<Outcome> outcome;  // nullopt: it is running
  std::string error;
};

/// Writes a row for the current or last attempt of `job`; call it before `changed`, which is the same job, is
/// linked. If there are more than kMaxHistory rows, the oldest is cleared.
void record_attempt(kv::Transaction& tx, const Job& job, Job& changed, Outcome outcome, std::int64_t ended_at,
                    std::string_view error = {});

/// The same for a job that has ended and is resubmitted.
void record_last_attempt(kv::Transaction& tx, Job& job);

/// All recorded attempts, the oldest first, including the current or last one.
std::vector<PastAttempt> attempts_of(kv::Transaction& tx, const Job& job);

/// As a JSON array.
std::string history_json(const std::vector<PastAttempt>& attempts);

/// Decodes an attempt from its row. Throws internal_error if the row is damaged.
PastAttempt decode_attempt(std::int64_t epoch, std::string_view row);

}  // namespace divan::jobs
