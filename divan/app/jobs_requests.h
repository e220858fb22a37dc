// The requests to the job queue that `divan jobs` makes.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "divan/app/response.h"

namespace divan::app {

/// "/_jobs/TYPE" and "/_jobs/TYPE/ID", encoded. Throw bad_request for an invalid type or id, which the server
/// would interpret as another request.
std::string type_path(std::string_view type);
std::string job_path(std::string_view type, std::string_view id);

struct JobRange {
  std::string type;
  std::string state{};  // empty: any
  // Begins with this job (empty: the first one). If jobs are listed by id and it does not exist, begins with
  // the next one in the order of the list.
  std::string start_id{};
  bool descending = false;
  std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
};

/// Lists jobs, by id or in the order of their state (docs/jobs.md), in as many requests as needed, and calls
/// `visit` for each job (without its data, in json::compact()'s form). Not one transaction: concurrent
/// changes may or may not be visible.
void for_each_job(http::Client& client, const JobRange& range,
                  const std::function<void(std::string_view job)>& visit);

}  // namespace divan::app
