// Jobs as they are stored, decoded by docs/keyspace.md without the queue's code where possible.
#pragma once

#include "divan/jobs/types.h"
#include "sim/observer.h"

namespace divan::sim {

using JobName = std::pair<std::string, std::string>;  // type and id

/// The key of a row under "jobs".
struct JobRow {
  std::string kind;
  JobName job;  // or only the type
};
/// Returns nullopt for other rows.
std::optional<JobRow> parse_job_row(std::string_view key);

/// The key of the one entry that the job must have in its state. `activity` of a running job without a worker
/// must be set.
std::string entry_of(const jobs::Job& job);

/// The key of the entry that it must also have if it runs and has a deadline.
std::string deadline_entry_of(const jobs::Job& job);

std::optional<jobs::Job> find_job(const Rows& rows, const JobName& name);
/// The fingerprint() of the job's rows of data, nullopt if there are none. `kind` is "data", "next" or
/// "result".
std::optional<std::string> data_under(const Rows& rows, std::string_view kind, const JobName& name);

}  // namespace divan::sim
