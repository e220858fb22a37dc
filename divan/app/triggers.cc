#include "divan/app/triggers.h"

#include <fmt/format.h>

#include "divan/app/response.h"
#include "divan/app/table.h"
#include "divan/app/times.h"
#include "divan/base/json.h"
#include "divan/http/url.h"

namespace divan::app {
namespace {

// Why it waits, or what went wrong last.
std::string problem_text(std::string_view info) {
  const auto waits = json::member(info, "waits").value_or("null");
  if (waits != "null")
    return fmt::format("waits until {}: {}", format_time(member_number(waits, "retry_at")),
                       member_text(waits, "error"));
  const auto error = json::member(info, "last_error").value_or("null");
  if (error == "null") return "-";
  return fmt::format("{}: {}", member_text(error, "id"), member_text(error, "reason"));
}

}  // namespace

void show_triggers(const TriggersOptions& options) {
  http::Client client = connect(options.query.connection);
  const auto database = "/" + http::percent_encode(options.database);
  const auto designs =
      json::compact(send_request(client, "GET", database + "/_design_docs?include_docs=true"));
  std::vector<Row> rows = {{"DESIGN DOCUMENT", "TRIGGER", "BEHIND", "JOBS ADDED", "LEFT OUT", "PROBLEM"}};
  std::string all;
  json::Writer writer(all);
  writer.begin_array();
  json::for_each_element(required_member(designs, "rows"), [&](std::string_view row) {
    const auto id = member_text(row, "id");
    const auto triggers = json::member(required_member(row, "doc"), "triggers");
    if (!triggers || !triggers->starts_with('{')) return true;
    json::for_each_member(*triggers, [&](std::string_view raw_name, std::string_view) {
      const auto name = json::unescape(raw_name);
      const auto response = client.request(
          "GET", fmt::format("{}/_design/{}/_trigger/{}", database,
                             http::percent_encode(id.substr(id.find('/') + 1)), http::percent_encode(name)));
      // Those of a malformed design document do not run.
      if (response.status == 404) {
        constexpr const char* kMalformed = "The definition is malformed.";
        rows.push_back({id, name, "-", "-", "-", kMalformed});
        writer.begin_object().key("design_document").string(id).key("name").string(name);
        writer.key("error").string(kMalformed).end_object();
        return true;
      }
      check_response(response);
      const auto info = json::compact(response.body);
      writer.begin_object().key("design_document").string(id);
      json::for_each_member(info, [&](std::string_view member, std::string_view value) {
        writer.key(member).raw(value);
        return true;
      });
      writer.end_object();
      rows.push_back({id, name, member_text(info, "behind"), member_text(info, "jobs_added"),
                      member_text(required_member(info, "left_out"), "documents"), problem_text(info)});
      return true;
    });
    return true;
  });
  writer.end_array();
  options.query.json ? fmt::print("{}\n", all) : print_table(rows);
}

}  // namespace divan::app
