#include "divan/api/job_options.h"

namespace divan::api {

jobs::Queue::AddOptions add_options(const Body& body) {
  jobs::Queue::AddOptions options{.scheduled_at = body.integer("scheduled_at"),
                                  .priority = body.integer("priority").value_or(0)};
  if (const auto schedule = body.raw("schedule"); schedule && *schedule != "null")
    options.schedule = jobs::Schedule::of_json(*schedule);
  return options;
}

std::string_view data_of(const Body& body) { return body.raw("data").value_or("{}"); }

}  // namespace divan::api
