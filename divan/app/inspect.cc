#include "divan/app/inspect.h"

#include <fmt/format.h>

#include "divan/app/response.h"
#include "divan/app/table.h"
#include "divan/app/times.h"
#include "divan/base/json.h"
#include "divan/http/url.h"

namespace divan::app {

void show_status(const QueryOptions& options) {
  http::Client client = connect(options.connection);
  const std::string welcome = json::compact(send_request(client, "GET", "/"));
  const std::string databases = json::compact(send_request(client, "GET", "/_all_dbs"));
  const std::string membership = json::compact(send_request(client, "GET", "/_membership"));
  const std::string tasks = json::compact(send_request(client, "GET", "/_active_tasks"));
  std::string all;
  json::Writer writer(all);
  writer.begin_object().key("server").raw(welcome).key("nodes").raw(required_member(membership, "nodes"));
  writer.key("databases").begin_array();
  std::vector<Row> rows = {{"DATABASE", "DOCUMENTS", "DELETED", "BYTES"}};
  json::for_each_element(databases, [&](std::string_view token) {
    const std::string name = json::string_value(token).value_or("");
    const std::string info = json::compact(send_request(client, "GET", "/" + http::percent_encode(name)));
    writer.raw(info);
    rows.push_back({name, member_text(info, "doc_count"), member_text(info, "doc_del_count"),
                    member_text(required_member(info, "sizes"), "active")});
    return true;
  });
  writer.end_array().key("tasks").raw(tasks).end_object();
  if (options.json) {
    fmt::print("{}\n", all);
    return;
  }
  std::vector<Row> nodes = {{"NODE", "ADDRESS", "VERSION", "STARTED", "BACKGROUND", "CPU", "JS", "REQUESTS/S",
                             "BUILDS", "MEMORY", "FREE DISK"}};
  json::for_each_member(
      required_member(membership, "nodes"), [&](std::string_view name, std::string_view node) {
        std::string background;
        json::for_each_element(required_member(node, "background"), [&](std::string_view kind) {
          background += (background.empty() ? "" : ",") + json::string_value(kind).value_or("");
          return true;
        });
        std::string address = member_text(node, "address");
        if (json::member(node, "serves") == "false")
          address += address.empty() ? "serves nothing" : " (metrics)";
        nodes.push_back({std::string(name), address, member_text(node, "version"),
                         format_time(member_number(node, "started")), background});
        const std::string_view load = json::member(node, "load").value_or("{}");
        for (const char* number : {"cpu_cores", "javascript_processes", "requests_per_second", "builds"})
          nodes.back().push_back(member_text(load, number));
        nodes.back().push_back(fmt::format("{} MB", member_number(load, "memory_bytes") / 1'000'000));
        nodes.back().push_back(fmt::format("{} GB", member_number(load, "disk_free_bytes") / 1'000'000'000));
        return true;
      });
  std::string building;
  std::size_t builds = 0;
  json::for_each_element(tasks, [&](std::string_view task) {
    ++builds;
    building += fmt::format("building {} of {}: {} of {} changes, {} %\n",
                            printable(member_text(task, "design_document")),
                            printable(member_text(task, "database")), member_text(task, "changes_done"),
                            member_text(task, "total_changes"), member_text(task, "progress"));
    return true;
  });
  fmt::print("Divan {} at {}, {} databases, {} indexes being built\n",
             printable(member_text(required_member(welcome, "vendor"), "version")),
             url_without_credentials(options.connection.url), rows.size() - 1, builds);
  print_table(nodes);
  if (rows.size() > 1) print_table(rows);
  fmt::print("{}", building);
}

void show_updates(const QueryOptions& options, bool follow_feed) {
  http::Client client = connect(options.connection);
  const auto print_row = [&](std::string_view row) {
    if (options.json) {
      fmt::print("{}\n", row);
    } else {
      fmt::print("{:<8} {}\n", member_text(row, "type"), printable(member_text(row, "db_name")));
    }
    std::fflush(stdout);
    return true;
  };
  if (follow_feed) return follow(client, "/_db_updates?feed=continuous&heartbeat=30000", print_row);
  if (const auto response = fetch(options, client, "/_db_updates"))
    json::for_each_element(required_member(*response, "results"), print_row);
}

}  // namespace divan::app
