#include "divan/app/workers_commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "divan/app/live.h"
#include "divan/app/response.h"
#include "divan/app/times.h"
#include "divan/base/clock.h"
#include "divan/base/json.h"
#include "divan/http/url.h"

namespace divan::app {
namespace {

struct WorkersOptions {
  QueryOptions query;
  std::string role;
  std::string interval = "1s";
};

std::string role_path(std::string_view role) { return "/_workers/" + http::percent_encode(role); }

void add_role(std::string_view role, std::vector<Row>& rows) {
  json::for_each_element(required_member(role, "workers"), [&](std::string_view worker) {
    rows.push_back({member_text(role, "role"), member_text(worker, "id"),
                    format_duration(std::chrono::milliseconds(member_number(worker, "timeout"))),
                    member_text(worker, "opts")});
    return true;
  });
}

// A table of the response to GET /_workers or GET /_workers/ROLE.
std::vector<Row> workers_table(std::string_view response) {
  std::vector<Row> rows = {{"ROLE", "ID", "TIMEOUT", "OPTIONS"}};
  const auto roles = json::member(response, "roles");
  if (!roles) {
    add_role(response, rows);
    return rows;
  }
  json::for_each_element(*roles, [&](std::string_view role) {
    add_role(role, rows);
    return true;
  });
  return rows;
}

int list_workers(const QueryOptions& options, const std::string& role) {
  http::Client client = connect(options.connection);
  const auto response = fetch(options, client, role.empty() ? "/_workers" : role_path(role));
  if (response) print_table(workers_table(*response));
  return 0;
}

void draw(LiveView& view, const QueryOptions& options, const Clock& clock, std::string_view response) {
  if (options.json) {
    LiveView::print_line(response);
  } else {
    view.draw(format_time(clock.wall_ms()), workers_table(response));
  }
}

int watch_workers(const WorkersOptions& options) {
  const auto interval = parse_interval(options.interval);
  end_on_interrupt(0);
  const SystemClock clock;
  LiveView view;
  http::Client client = connect(options.query.connection);
  if (!options.role.empty()) {
    follow(client, role_path(options.role) + "?feed=continuous&heartbeat=30000",
           [&](std::string_view members) {
             draw(view, options.query, clock, members);
             return true;
           });
  }
  // Only single roles have a feed.
  for (;; clock.sleep(interval))
    draw(view, options.query, clock, json::compact(send_request(client, "GET", "/_workers")));
}

}  // namespace

void add_workers_commands(CLI::App& app, Command& command) {
  const auto options = std::make_shared<WorkersOptions>();
  auto* workers = app.add_subcommand("workers", "Show workers (default: list)");
  workers->require_subcommand(0, 1);
  add_query(*workers, options->query);
  workers->callback([&command, options] {
    if (!command) command = [options] { return list_workers(options->query, ""); };
  });

  auto* list = workers->add_subcommand("list", "List the workers of all roles, or of one");
  list->add_option("ROLE", options->role, "Only this role");
  add_query(*list, options->query);
  list->callback(
      [&command, options] { command = [options] { return list_workers(options->query, options->role); }; });

  auto* watch = workers->add_subcommand("watch", "Watch the workers of all roles, or of one");
  watch->add_option("ROLE", options->role, "Only this role; changes are shown at once");
  watch->add_option("--interval", options->interval, "Time between two polls of all roles")
      ->capture_default_str();
  add_query(*watch, options->query);
  watch->footer("Press Ctrl-C to end. On a terminal the table is updated in place.");
  watch->callback([&command, options] { command = [options] { return watch_workers(*options); }; });
}

}  // namespace divan::app
