// `divan jobs types|list|show`: the current state of the job queue. The commands return the program's exit
// status and throw the server's errors.
#pragma once

#include "divan/app/jobs_requests.h"
#include "divan/app/table.h"

namespace divan::app {

int show_types(const QueryOptions& options);
int list_jobs(const QueryOptions& options, const JobRange& range);
int show_job(const QueryOptions& options, std::string_view type, std::string_view id);

/// A table of the response to GET /_jobs (in json::compact()'s form).
std::vector<Row> types_table(std::string_view response);

/// "3 pending, 1 running, ..." and the settings, from a type's JSON.
std::string describe_type(std::string_view type);

/// Returns true if the server delivers the jobs of a type, from its JSON.
bool is_delivered(std::string_view type);

/// The header of a table of jobs, and the row of a job; missing values are "-". `with_progress` adds a
/// column.
Row jobs_head(bool with_progress);
Row job_row(std::string_view job, bool with_progress);

/// "role/id" of the job's worker; "" if it has none.
std::string worker_text(std::string_view job);

/// Returns true if the setting is in milliseconds, which the command line shows as a duration.
bool is_duration_setting(std::string_view name);

}  // namespace divan::app
