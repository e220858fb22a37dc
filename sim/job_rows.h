// Jobs as they lie in the store, read by docs/keyspace.md and past the queue's own ways.
#pragma once

#include "divan/jobs/types.h"
#include "sim/observer.h"

namespace divan::sim {

using JobName = std::pair<std::string, std::string>;  // type and id

/// What a row under "jobs" is about.
struct JobRow {
  std::string kind;
  JobName job;  // or only the type
};
/// Nothing for rows of others.
std::optional<JobRow> parse_job_row(std::string_view key);

/// The key of the one entry that the job must have in its state. A running job without a worker must have
/// its activity.
std::string entry_of(const jobs::Job& job);

/// The key of the other entry that it must have if it runs and has a deadline.
std::string deadline_entry_of(const jobs::Job& job);

std::optional<jobs::Job> find_job(const Rows& rows, const JobName& name);
/// What the job's data rows say, as fingerprint() has it, if there are any. `kind` is "data", "next" or
/// "result".
std::optional<std::string> data_under(const Rows& rows, std::string_view kind, const JobName& name);

}  // namespace divan::sim
