// The job queue's requests, as the commands of `divan jobs` make them.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "divan/app/answer.h"

namespace divan::app {

/// "/_jobs/TYPE" and "/_jobs/TYPE/ID", encoded. Throw bad_request for what no type or id can be, which the
/// server would take for another request.
std::string type_path(std::string_view type);
std::string job_path(std::string_view type, std::string_view id);

struct JobRange {
  std::string type;
  std::string state{};     // empty: any
  std::string start_id{};  // the first job; where jobs are listed by id, also the next one after this id
  bool descending = false;
  std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
};

/// Asks for jobs, by id or in the order of their state (docs/jobs.md), in as many requests as it takes, and
/// gives each (without its data, in json::compact()'s form) to `visit`. Not one transaction: what changes
/// meanwhile may be seen or not.
void for_each_job(http::Client& client, const JobRange& range,
                  const std::function<void(std::string_view job)>& visit);

}  // namespace divan::app
