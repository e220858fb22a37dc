// `divan jobs add|cancel|resubmit|remove|set|remove-type`: what changes the job queue. All answer the
// program's exit status and throw the server's errors.
#pragma once

#include <map>

#include "divan/app/jobs_requests.h"

namespace divan::app {

struct AddJobOptions {
  std::string type;
  std::string id;                         // empty: the server makes one
  std::optional<std::string> data{};      // JSON, "@file", or "-" for standard input
  std::optional<std::string> at{}, in{};  // a time, or a duration from now (times.h)
  std::optional<std::int64_t> priority{};
  std::optional<std::string> schedule{};             // a cron expression: a periodic job
  std::optional<std::string> time_zone{}, missed{};  // of the schedule
  // Settings of its own by name (jobs::kJobLimits), each a number, a duration, or "null" for none.
  std::map<std::string, std::string, std::less<>> limits{};
};
int add_job(const QueryOptions& options, const AddJobOptions& job);

/// What is done to each of several jobs.
enum class JobChange { cancel, resubmit, remove };

/// Goes through all of the jobs, whatever happens to one; what the server refuses is told on standard error.
/// 1 if there was any such.
int change_jobs(const QueryOptions& options, JobChange change, std::string_view type,
                const std::vector<std::string>& ids);

/// Changes all jobs of a type that are in this state, in as many requests as it takes, and prints how many
/// there were.
int change_all(const QueryOptions& options, JobChange change, const std::string& type,
               const std::string& state);

/// Sets a type's settings, each "name=value" with a value in JSON or a duration; declares the type if it is
/// not there.
int set_type(const QueryOptions& options, std::string_view type, const std::vector<std::string>& settings);

/// With `force` the type's jobs are removed, too.
int remove_type(const QueryOptions& options, std::string_view type, bool force);

}  // namespace divan::app
