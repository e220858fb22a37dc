#include "divan/app/inspect.h"

#include <fmt/format.h>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/http/url.h"

namespace divan::app {
namespace {

namespace bj = boost::json;

// Text columns, each as wide as its widest cell.
void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      fmt::print("{:<{}}{}", row[i], i + 1 < row.size() ? widths[i] : 0, i + 1 < row.size() ? "  " : "\n");
    }
  }
}

std::string text(const bj::value& value) {
  return value.is_string() ? std::string(value.get_string()) : bj::serialize(value);
}

std::string member(const bj::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  return value == nullptr ? "" : text(*value);
}

// Asks and shows as it is, or parses.
std::optional<bj::object> fetch(const InspectOptions& options, http::Client& client,
                                const std::string& target) {
  const std::string body = ask(client, "GET", target);
  if (!options.json) return json::parse_object(body);
  fmt::print("{}", body);
  return std::nullopt;
}

}  // namespace

void show_status(const InspectOptions& options) {
  http::Client client = connect(options.connection);
  const auto welcome = fetch(options, client, "/");
  if (!welcome) return;
  const auto databases = json::parse(ask(client, "GET", "/_all_dbs")).as_array();
  const auto tasks = json::parse(ask(client, "GET", "/_active_tasks")).as_array();
  fmt::print("Divan {} at {}, {} databases, {} indexes being built\n",
             member(welcome->at("vendor").as_object(), "version"), options.connection.url, databases.size(),
             tasks.size());
  std::vector<std::vector<std::string>> rows = {{"DATABASE", "DOCUMENTS", "DELETED", "BYTES"}};
  for (const auto& name : databases) {
    const auto info = json::parse_object(ask(client, "GET", "/" + http::percent_encode(text(name))));
    rows.push_back({text(name), member(info, "doc_count"), member(info, "doc_del_count"),
                    member(info.at("sizes").as_object(), "active")});
  }
  if (rows.size() > 1) print_table(rows);
  for (const auto& task : tasks) {
    const auto& object = task.as_object();
    fmt::print("building {} of {}: {} of {} changes, {} %\n", member(object, "design_document"),
               member(object, "database"), member(object, "changes_done"), member(object, "total_changes"),
               member(object, "progress"));
  }
}

void show_jobs(const InspectOptions& options, const std::string& type) {
  http::Client client = connect(options.connection);
  if (type.empty()) {
    const auto answer = fetch(options, client, "/_jobs");
    if (!answer) return;
    std::vector<std::vector<std::string>> rows = {
        {"TYPE", "PENDING", "RUNNING", "FINISHED", "FAILED", "CANCELLED"}};
    for (const auto& entry : answer->at("types").as_array()) {
      const auto& counts = entry.as_object().at("counts").as_object();
      rows.push_back({member(entry.as_object(), "type"), member(counts, "pending"), member(counts, "running"),
                      member(counts, "finished"), member(counts, "failed"), member(counts, "cancelled")});
    }
    print_table(rows);
    return;
  }
  const auto answer = fetch(options, client, "/_jobs/" + http::percent_encode(type) + "/_list?limit=1000");
  if (!answer) return;
  std::vector<std::vector<std::string>> rows = {{"ID", "STATE", "ATTEMPT", "PROGRESS", "LAST ERROR"}};
  for (const auto& entry : answer->at("jobs").as_array()) {
    const auto& job = entry.as_object();
    rows.push_back({member(job, "id"), member(job, "state"), member(job, "attempt"), member(job, "progress"),
                    member(job, "last_error")});
  }
  print_table(rows);
}

void show_workers(const InspectOptions& options) {
  http::Client client = connect(options.connection);
  const auto answer = fetch(options, client, "/_workers");
  if (!answer) return;
  std::vector<std::vector<std::string>> rows = {{"ROLE", "ID", "TIMEOUT MS", "OPTIONS"}};
  for (const auto& role : answer->at("roles").as_array()) {
    for (const auto& entry : role.as_object().at("workers").as_array()) {
      const auto& worker = entry.as_object();
      rows.push_back({member(role.as_object(), "role"), member(worker, "id"), member(worker, "timeout"),
                      member(worker, "opts")});
    }
  }
  print_table(rows);
}

void show_updates(const InspectOptions& options, bool follow) {
  http::Client client = connect(options.connection);
  const auto print_row = [&](const bj::object& row) {
    fmt::print("{:<8} {}\n", member(row, "type"), member(row, "db_name"));
    std::fflush(stdout);
  };
  if (!follow) {
    const auto answer = fetch(options, client, "/_db_updates");
    if (!answer) return;
    for (const auto& row : answer->at("results").as_array()) print_row(row.as_object());
    return;
  }
  const auto response =
      client.stream_lines("GET", "/_db_updates?feed=continuous&heartbeat=30000", [&](std::string_view line) {
        if (line.empty()) return true;
        if (options.json) {
          fmt::print("{}\n", line);
          std::fflush(stdout);
        } else {
          print_row(json::parse_object(line));
        }
        return true;
      });
  if (response.status >= 400) throw Error(response.status, "error", response.body);
}

}  // namespace divan::app
