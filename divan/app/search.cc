#include "divan/app/search.h"

#include <fmt/core.h>

#include <cstdlib>

#include "divan/app/response.h"
#include "divan/app/table.h"
#include "divan/base/json.h"
#include "divan/http/url.h"

namespace divan::app {
namespace {

// The value by which a result is sorted: a score is shown with two digits after the point.
std::string describe_order(std::string_view order, bool is_score) {
  std::string first;
  json::for_each_element(order, [&](std::string_view value) {
    first = json::string_value(value).value_or(std::string(value));
    return false;
  });
  return is_score ? fmt::format("{:.2f}", std::strtod(first.c_str(), nullptr)) : first;
}

// name: value, name: value
std::string describe_fields(std::string_view fields) {
  std::string text;
  json::for_each_member(fields, [&](std::string_view name, std::string_view value) {
    if (!text.empty()) text += ", ";
    text += json::unescape(name) + ": " + json::string_value(value).value_or(std::string(value));
    return true;
  });
  return text;
}

}  // namespace

void show_search(const SearchOptions& options) {
  const auto [design, index] = split_pair(options.index, '/', "DESIGN/INDEX");
  std::string target =
      fmt::format("/{}/_design/{}/_search/{}?limit={}&q={}", http::percent_encode(options.database),
                  http::percent_encode(design), http::percent_encode(index), options.limit,
                  http::percent_encode(options.text));
  if (!options.sort.empty()) {
    const bool is_json = options.sort.starts_with('[') || options.sort.starts_with('"');
    target += "&sort=" + http::percent_encode(is_json ? options.sort : json::quoted(options.sort));
  }
  http::Client client = connect(options.query.connection);
  const auto response = fetch(options.query, client, target);
  if (!response) return;
  std::vector<Row> rows = {{options.sort.empty() ? "SCORE" : "ORDER", "DOCUMENT", "FIELDS"}};
  json::for_each_element(required_member(*response, "rows"), [&](std::string_view row) {
    rows.push_back({describe_order(required_member(row, "order"), options.sort.empty()),
                    member_text(row, "id"), describe_fields(required_member(row, "fields"))});
    return true;
  });
  print_table(rows);
  const auto total = member_number(*response, "total_rows");
  if (total > static_cast<std::int64_t>(rows.size()) - 1)
    fmt::print("{} of {} documents\n", rows.size() - 1, total);
}

}  // namespace divan::app
