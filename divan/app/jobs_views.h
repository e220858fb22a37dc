// `divan jobs types|list|show`: the job queue as it is at the moment. The commands answer the program's exit
// status and throw the server's errors.
#pragma once

#include "divan/app/jobs_requests.h"
#include "divan/app/table.h"

namespace divan::app {

int show_types(const QueryOptions& options);
int list_jobs(const QueryOptions& options, const JobRange& range);
int show_job(const QueryOptions& options, std::string_view type, std::string_view id);

/// A table of what GET /_jobs answers (in json::compact()'s form).
std::vector<Row> types_table(std::string_view answer);

/// "3 pending, 1 running, ..." and the settings of a type's JSON.
std::string describe_type(std::string_view type);

/// The columns of a job, and their names; what a job lacks is "-". `with_progress` has one more.
Row jobs_head(bool with_progress);
Row job_row(std::string_view job, bool with_progress);

/// "role/id" of the worker that has the job; "" if it has none.
std::string worker_text(std::string_view job);

/// Whether the setting is in milliseconds, which people write as a duration.
bool is_duration_setting(std::string_view name);

}  // namespace divan::app
