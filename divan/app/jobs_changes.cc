#include "divan/app/jobs_changes.h"

#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <iterator>

#include "divan/app/jobs_views.h"
#include "divan/app/table.h"
#include "divan/app/times.h"
#include "divan/base/bytes.h"
#include "divan/base/clock.h"
#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::app {
namespace {

std::string change_one(http::Client& client, JobChange change, const std::string& path) {
  switch (change) {
    case JobChange::cancel: return send_request(client, "POST", path + "/_cancel");
    case JobChange::resubmit: return send_request(client, "POST", path + "/_resubmit");
    case JobChange::remove: break;
  }
  return send_request(client, "DELETE", path);
}

std::string read_all(std::istream& in, std::string_view name) {
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) throw bad_request(fmt::format("Cannot read {}.", name));
  return text;
}

std::string read_data(const std::string& data) {
  std::string text = data, name = "--data";
  if (data == "-") {
    name = "standard input";
    text = read_all(std::cin, name);
  } else if (data.starts_with('@')) {
    name = data.substr(1);
    std::ifstream file(name, std::ios::binary);
    if (!file || file.peek() == std::ifstream::traits_type::eof())
      throw bad_request(fmt::format("Cannot read {}, or it is empty; expected a file with JSON.", name));
    text = read_all(file, name);
  }
  try {
    return json::compact(text);
  } catch (const Error& error) { throw bad_request(fmt::format("{}: {}", name, error.reason())); }
}

void append_schedule(json::Writer& writer, const AddJobOptions& job) {
  writer.key("schedule").begin_object().key("cron").string(*job.schedule);
  if (job.time_zone) writer.key("time_zone").string(*job.time_zone);
  if (job.missed) writer.key("missed").string(*job.missed);
  writer.end_object();
}

// A setting's value as JSON.
std::string setting_value(std::string_view name, std::string_view value) {
  try {
    return json::compact(value);
  } catch (const Error&) {
    if (is_duration_setting(name)) return std::to_string(parse_duration(value).count());
    // The server reports the expected type.
    return json::quoted(value);
  }
}

std::string add_body(const AddJobOptions& job) {
  std::string body;
  json::Writer writer(body);
  writer.begin_object();
  if (job.data) writer.key("data").raw(read_data(*job.data));
  if (job.at) writer.key("scheduled_at").number(parse_time(*job.at));
  if (job.in) writer.key("scheduled_at").number(SystemClock().wall_ms() + parse_duration(*job.in).count());
  if (job.priority) writer.key("priority").number(*job.priority);
  if (job.schedule) append_schedule(writer, job);
  for (const auto& [name, value] : job.limits) writer.key(name).raw(setting_value(name, value));
  writer.end_object();
  return body;
}

// A running job is not cancelled at once, and one that has ended is not cancelled at all.
std::string cancelled_text(http::Client& client, std::string_view type, std::string_view id) {
  const std::string state =
      member_text(json::compact(send_request(client, "GET", job_path(type, id))), "state");
  if (state == "cancelled") return fmt::format("cancelled {}", printable(id));
  if (state == "running") return fmt::format("cancelling {}: its worker is asked to stop", printable(id));
  return fmt::format("not cancelled {}: it is {}", printable(id), printable(state));
}

// Returns true if the error concerns one job only.
bool is_of_one_job(const Error& error) {
  return error.status() < 500 && error.status() != 401 && error.status() != 403;
}

// {"id": id, and the response's members}
void print_json(std::string_view id, std::string_view response) {
  std::string line;
  json::Writer writer(line);
  writer.begin_object().key("id").string(id);
  json::for_each_member(response, [&](std::string_view name, std::string_view value) {
    if (name != "id") writer.key(name).raw(value);
    return true;
  });
  writer.end_object();
  fmt::print("{}\n", line);
}

void print_error(std::string_view id, const Error& error, bool as_json) {
  if (as_json) {
    print_json(id, fmt::format(R"({{"error":{},"reason":{}}})", json::quoted(error.name()),
                               json::quoted(error.reason())));
  }
  std::fflush(stdout);
  fmt::print(stderr, "divan: {}: {}\n", printable(id), printable(error.what()));
}

std::string settings_body(const std::vector<std::string>& settings) {
  std::string body;
  json::Writer writer(body);
  writer.begin_object();
  for (const std::string_view setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == 0 || equals == std::string_view::npos || !is_utf8(setting))
      throw bad_request(fmt::format("Invalid setting `{}`; expected NAME=VALUE.", setting));
    const auto name = setting.substr(0, equals);
    writer.key(name).raw(setting_value(name, setting.substr(equals + 1)));
  }
  writer.end_object();
  return body;
}

bool is_declared(http::Client& client, std::string_view type) {
  try {
    send_request(client, "GET", type_path(type));
    return true;
  } catch (const Error& error) {
    if (error.name() != "no_such_job_type") throw;
    return false;
  }
}

}  // namespace

int add_job(const QueryOptions& options, const AddJobOptions& job) {
  http::Client client = connect(options.connection);
  const std::string response = job.id.empty()
                                   ? send_request(client, "POST", type_path(job.type), add_body(job))
                                   : send_request(client, "PUT", job_path(job.type, job.id), add_body(job));
  const std::string added = json::compact(response);
  if (options.json) {
    fmt::print("{}\n", added);
  } else {
    fmt::print("{} {}\n", member_text(added, "created") == "true" ? "added" : "changed",
               printable(member_text(added, "id")));
  }
  return 0;
}

int change_jobs(const QueryOptions& options, JobChange change, std::string_view type,
                const std::vector<std::string>& ids) {
  // An invalid id prevents all changes.
  for (const auto& id : ids) job_path(type, id);
  http::Client client = connect(options.connection);
  int status = 0;
  for (const auto& id : ids) {
    try {
      const std::string response = change_one(client, change, job_path(type, id));
      if (options.json) {
        print_json(id, json::compact(response));
      } else if (change == JobChange::cancel) {
        fmt::print("{}\n", cancelled_text(client, type, id));
      } else {
        fmt::print("{} {}\n", change == JobChange::remove ? "removed" : "resubmitted", printable(id));
      }
    } catch (const Error& error) {
      if (!is_of_one_job(error)) throw;
      print_error(id, error, options.json);
      status = 1;
    }
  }
  return status;
}

int change_all(const QueryOptions& options, JobChange change, const std::string& type,
               const std::string& state) {
  const std::string_view done = change == JobChange::cancel     ? "cancelled"
                                : change == JobChange::resubmit ? "resubmitted"
                                                                : "removed";
  const std::string_view action = change == JobChange::cancel     ? "/_cancel"
                                  : change == JobChange::resubmit ? "/_resubmit"
                                                                  : "/_remove";
  http::Client client = connect(options.connection);
  std::int64_t count = 0;
  for (std::string start;;) {
    std::string body;
    json::Writer writer(body);
    writer.begin_object().key("state").string(state);
    if (!start.empty()) writer.key("start").string(start);
    writer.end_object();
    const std::string response =
        json::compact(send_request(client, "POST", type_path(type) + std::string(action), body));
    count += member_number(response, "changed");
    start = member_text(response, "next");
    if (start.empty()) break;
    fmt::print(stderr, "{} {}; {} are {}\n", done, count, member_number(response, "left"), state);
  }
  if (options.json) {
    fmt::print("{{\"ok\":true,\"{}\":{}}}\n", done, count);
  } else {
    fmt::print("{} {} {}\n", done, count, count == 1 ? "job" : "jobs");
  }
  return 0;
}

int redeliver_jobs(const QueryOptions& options, const std::string& type,
                   const std::vector<std::string>& ids) {
  {
    http::Client client = connect(options.connection);
    const auto described = json::compact(send_request(client, "GET", type_path(type)));
    if (!is_delivered(described))
      throw bad_request(fmt::format("Jobs of type `{}` are not delivered.", type));
  }
  return ids.empty() ? change_all(options, JobChange::resubmit, type, "failed")
                     : change_jobs(options, JobChange::resubmit, type, ids);
}

int set_type(const QueryOptions& options, std::string_view type, const std::vector<std::string>& settings) {
  const std::string body = settings_body(settings);
  http::Client client = connect(options.connection);
  const bool declared = is_declared(client, type);
  const std::string response = send_request(client, "PUT", type_path(type), body);
  if (options.json) {
    fmt::print("{}\n", json::compact(response));
  } else {
    const std::string now = json::compact(send_request(client, "GET", type_path(type)));
    fmt::print("{} {}: {}\n", declared ? "set" : "declared", printable(type), printable(describe_type(now)));
  }
  return 0;
}

int remove_type(const QueryOptions& options, std::string_view type, bool force) {
  http::Client client = connect(options.connection);
  const auto response = client.request("DELETE", type_path(type) + (force ? "?force=true" : ""));
  // The server's message names the query parameter.
  if (response.status == 409 && !force && response.body.find("force=true") != std::string::npos)
    throw conflict("The job type has jobs; use --force to remove them, too.");
  check_response(response);
  if (options.json) {
    fmt::print("{}\n", json::compact(response.body));
  } else {
    fmt::print("removed {}\n", printable(type));
  }
  return 0;
}

}  // namespace divan::app
