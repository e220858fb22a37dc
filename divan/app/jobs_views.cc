#include "divan/app/jobs_views.h"

#include <fmt/format.h>

#include <algorithm>

#include "divan/app/pretty_json.h"
#include "divan/app/times.h"
#include "divan/base/json.h"
#include "divan/jobs/types.h"

namespace divan::app {
namespace {

constexpr std::size_t kProgressColumns = 30;

std::string cell(std::string text) { return text.empty() ? "-" : std::move(text); }

std::string time_text(std::int64_t ms) { return ms == 0 ? "" : format_time(ms); }

std::string setting_text(std::string_view name, std::string_view value) {
  const auto ms = json::int_value(value);
  if (ms && *ms >= 0 && is_duration_setting(name)) return format_duration(std::chrono::milliseconds(*ms));
  return json::string_value(value).value_or(std::string(value));
}

// "name=value ..." of the settings that differ from the defaults.
std::string settings_text(std::string_view settings) {
  const std::string defaults = jobs::settings_json({});
  std::string text;
  json::for_each_member(settings, [&](std::string_view name, std::string_view value) {
    if (json::member(defaults, name) == value) return true;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, setting_text(name, value));
    return true;
  });
  return text;
}

// The time when the job may run: the requested one, or the one after a pause.
std::string due_text(std::string_view job) {
  if (member_text(job, "state") != "pending") return "";
  const auto due_at = member_number(job, "due_at");
  return time_text(due_at != 0 ? due_at : member_number(job, "scheduled_at"));
}

// "30 7 * * mon-fri, Europe/Berlin, missed: once"
std::string schedule_text(std::string_view schedule) {
  return fmt::format("{}, {}, missed: {}", member_text(schedule, "cron"), member_text(schedule, "time_zone"),
                     member_text(schedule, "missed"));
}

// A job's past and current attempts, a row for each.
std::vector<Row> history_table(std::string_view history) {
  std::vector<Row> rows = {{"ATTEMPT", "STARTED", "ENDED", "OUTCOME", "WORKER", "ERROR"}};
  json::for_each_element(history, [&](std::string_view attempt) {
    rows.push_back({member_text(attempt, "attempt"), cell(time_text(member_number(attempt, "started_at"))),
                    cell(time_text(member_number(attempt, "ended_at"))),
                    cell(member_text(attempt, "outcome")), cell(worker_text(attempt)),
                    cell(member_text(attempt, "error"))});
    return true;
  });
  return rows;
}

// A member of a job in the form of `show`.
std::string value_text(std::string_view job, std::string_view name, std::string_view value) {
  if (name == "worker") return worker_text(job);
  if (name == "schedule") return schedule_text(value);
  if (is_duration_setting(name)) return setting_text(name, value);
  const auto number = json::int_value(value);
  if (name == "scheduled_at" && number == 0) return "at once";
  if ((name.ends_with("_at") || name == "deadline") && number) return format_time(*number);
  return json::string_value(value).value_or(std::string(value));
}

}  // namespace

bool is_duration_setting(std::string_view name) {
  constexpr std::string_view kNames[] = {"timeout",   "backoff_min",      "backoff_max",
                                         "retention", "retention_failed", "max_runtime"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

std::string worker_text(std::string_view job) {
  const auto worker = json::member(job, "worker");
  if (!worker || !worker->starts_with('{')) return "";
  return member_text(*worker, "role") + "/" + member_text(*worker, "id");
}

std::vector<Row> types_table(std::string_view response) {
  Row head = {"TYPE"};
  for (const auto state : jobs::kStates) {
    std::string name(jobs::state_name(state));
    std::ranges::transform(name, name.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
    head.push_back(std::move(name));
  }
  head.push_back("SETTINGS");
  std::vector<Row> rows = {std::move(head)};
  json::for_each_element(required_member(response, "types"), [&](std::string_view type) {
    const auto counts = required_member(type, "counts");
    Row row = {member_text(type, "type")};
    for (const auto state : jobs::kStates)
      row.push_back(std::to_string(member_number(counts, jobs::state_name(state))));
    row.push_back(cell(settings_text(required_member(type, "settings"))));
    rows.push_back(std::move(row));
    return true;
  });
  return rows;
}

std::string describe_type(std::string_view type) {
  const auto counts = required_member(type, "counts");
  std::string text;
  for (const auto state : jobs::kStates) {
    const auto name = jobs::state_name(state);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", member_number(counts, name), name);
  }
  const std::string settings = settings_text(required_member(type, "settings"));
  return settings.empty() ? text : text + "; " + settings;
}

bool is_delivered(std::string_view type) {
  return json::member(required_member(type, "settings"), "deliver").has_value();
}

Row jobs_head(bool with_progress) {
  Row head = {"ID", "STATE", "ATTEMPT", "FAILURES", "DUE", "STARTED", "WORKER", "LAST ERROR"};
  if (with_progress) head.insert(head.end() - 1, "PROGRESS");
  return head;
}

Row job_row(std::string_view job, bool with_progress) {
  Row row = {member_text(job, "id"),
             member_text(job, "state"),
             std::to_string(member_number(job, "attempt")),
             std::to_string(member_number(job, "failures")),
             cell(due_text(job)),
             cell(time_text(member_number(job, "started_at"))),
             cell(worker_text(job)),
             cell(member_text(job, "last_error"))};
  if (with_progress)
    row.insert(row.end() - 1, cell(cut(printable(member_text(job, "progress")), kProgressColumns)));
  return row;
}

int show_types(const QueryOptions& options) {
  http::Client client = connect(options.connection);
  if (const auto response = fetch(options, client, "/_jobs")) print_table(types_table(*response));
  return 0;
}

int list_jobs(const QueryOptions& options, const JobRange& range) {
  http::Client client = connect(options.connection);
  std::vector<Row> rows = {jobs_head(false)};
  std::string json = "{\"jobs\":[";
  std::optional<std::string> next;
  JobRange one_more = range;
  ++one_more.limit;
  std::uint64_t count = 0;
  for_each_job(client, one_more, [&](std::string_view job) {
    if (++count > range.limit) {
      next = member_text(job, "id");
    } else if (!options.json) {
      rows.push_back(job_row(job, false));
    } else {
      json += (count > 1 ? ",\n" : "") + std::string(job);
    }
  });
  if (options.json) {
    fmt::print("{}]}}\n", json);
  } else {
    print_table(rows);
  }
  if (next) {
    std::fflush(stdout);
    fmt::print(stderr, "There are more jobs; the next id is {}\n", printable(*next));
  }
  return 0;
}

int show_job(const QueryOptions& options, std::string_view type, std::string_view id) {
  http::Client client = connect(options.connection);
  const auto job = fetch(options, client, job_path(type, id));
  if (!job) return 0;
  std::vector<Row> rows;
  std::string data, result, history;
  json::for_each_member(*job, [&](std::string_view name, std::string_view value) {
    if (name == "data") {
      data = pretty_json(value);
    } else if (name == "result") {
      result = "result\n" + pretty_json(value) + "\n";
    } else if (name == "history") {
      if (value != "[]") history = "history\n" + format_table(history_table(value));
    } else {
      rows.push_back({std::string(name), value_text(*job, name, value)});
    }
    return true;
  });
  // Not truncated to the terminal's width.
  fmt::print("{}{}data\n{}\n{}", format_table(rows), history, data, result);
  return 0;
}

}  // namespace divan::app
