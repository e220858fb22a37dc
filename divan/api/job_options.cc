#include "divan/api/job_options.h"

#include "divan/base/json.h"

namespace divan::api {

jobs::Queue::AddOptions add_options(const Body& body) {
  jobs::Queue::AddOptions options{.scheduled_at = body.integer("scheduled_at"),
                                  .priority = body.integer("priority").value_or(0)};
  if (const auto schedule = body.raw("schedule"); schedule && *schedule != "null")
    options.schedule = jobs::Schedule::of_json(*schedule);
  std::string limits;
  json::Writer writer(limits);
  writer.begin_object();
  for (const auto name : jobs::kJobLimits) {
    if (const auto value = body.raw(name)) writer.key(name).raw(*value);
  }
  writer.end_object();
  options.limits = jobs::job_limits(limits);
  return options;
}

std::string_view data_of(const Body& body) { return body.raw("data").value_or("{}"); }

}  // namespace divan::api
