#include "divan/app/jobs_watch.h"

#include <fmt/format.h>

#include "divan/app/jobs_views.h"
#include "divan/app/live.h"
#include "divan/app/times.h"
#include "divan/base/clock.h"
#include "divan/base/json.h"

namespace divan::app {
namespace {

constexpr std::uint64_t kShownJobs = 100;
// The exit status of shells for a program that was interrupted.
constexpr int kInterrupted = 130;

// The type's JSON with an additional member "jobs".
std::string with_jobs(std::string_view type, const std::string& jobs) {
  std::string out;
  json::Writer writer(out);
  writer.begin_object();
  json::for_each_member(type, [&](std::string_view name, std::string_view value) {
    writer.key(name).raw(value);
    return true;
  });
  writer.key("jobs").raw("[" + jobs + "]").end_object();
  return out;
}

// "; delivery is open until 2030-01-31T08:00:00Z: example.com responds with 500." for a type whose receiver
// is paused, from /_deliver, which only administrators may read.
std::string delivery_text(http::Client& client, const std::string& type) {
  const auto response = client.request("GET", "/_deliver");
  if (response.status != 200) return {};
  std::string text;
  const auto deliveries = json::compact(response.body);
  json::for_each_element(required_member(deliveries, "nodes"), [&](std::string_view node) {
    json::for_each_element(json::member(node, "types").value_or("[]"), [&](std::string_view paused) {
      if (member_text(paused, "type") != type) return true;
      text += "; delivery is " + member_text(paused, "state");
      if (const auto retry_at = member_number(paused, "retry_at"); retry_at > 0)
        text += " until " + format_time(retry_at);
      if (const auto error = member_text(paused, "last_error"); !error.empty()) text += ": " + error;
      return true;
    });
    return true;
  });
  return printable(text);
}

// "2030-01-31T08:00:00Z  failed  attempt 3  progress 40  error: ..."
std::string change_line(std::string_view job, std::int64_t now_ms) {
  std::string line = format_time(now_ms) + "  " + member_text(job, "state");
  if (const auto attempt = member_number(job, "attempt"); attempt > 0)
    line += fmt::format("  attempt {}", attempt);
  if (const auto progress = member_text(job, "progress"); !progress.empty()) line += "  progress " + progress;
  if (const auto error = member_text(job, "last_error"); !error.empty()) line += "  error: " + error;
  return printable(line);
}

}  // namespace

int watch_types(const QueryOptions& options, std::chrono::milliseconds interval) {
  end_on_interrupt(0);
  const SystemClock clock;
  http::Client client = connect(options.connection);
  for (LiveView view;; clock.sleep(interval)) {
    const std::string response = json::compact(send_request(client, "GET", "/_jobs"));
    if (options.json) {
      LiveView::print_line(response);
    } else {
      view.draw(format_time(clock.wall_ms()), types_table(response));
    }
  }
}

int watch_type(const QueryOptions& options, const std::string& type, std::chrono::milliseconds interval) {
  end_on_interrupt(0);
  const SystemClock clock;
  http::Client client = connect(options.connection);
  for (LiveView view;; clock.sleep(interval)) {
    const std::string settings = json::compact(send_request(client, "GET", type_path(type)));
    std::vector<Row> rows = {jobs_head(true)};
    std::string jobs;
    for (const std::string_view state : {"running", "failed"}) {
      // The most recent failures first: the screen may be too small for all of them.
      for_each_job(
          client,
          {.type = type, .state = std::string(state), .descending = state == "failed", .limit = kShownJobs},
          [&](std::string_view job) {
            rows.push_back(job_row(job, true));
            jobs += (jobs.empty() ? "" : ",") + std::string(job);
          });
    }
    if (options.json) {
      LiveView::print_line(with_jobs(settings, jobs));
    } else {
      const std::string heading =
          fmt::format("{}  {}: {}{}", format_time(clock.wall_ms()), type, describe_type(settings),
                      is_delivered(settings) ? delivery_text(client, type) : "");
      view.draw(heading, rows);
    }
  }
}

int watch_job(const QueryOptions& options, std::string_view type, std::string_view id) {
  end_on_interrupt(kInterrupted);
  const SystemClock clock;
  http::Client client = connect(options.connection);
  std::string state;
  follow(client, job_path(type, id) + "?feed=continuous&heartbeat=30000", [&](std::string_view job) {
    LiveView::print_line(options.json ? std::string(job) : change_line(job, clock.wall_ms()));
    state = member_text(job, "state");
    return state == "pending" || state == "running";
  });
  return state == "finished" ? 0 : 1;
}

}  // namespace divan::app
