#include "divan/app/near.h"

#include <fmt/format.h>

#include <cstdlib>

#include "divan/app/response.h"
#include "divan/app/table.h"
#include "divan/base/json.h"
#include "divan/http/url.h"

namespace divan::app {
namespace {

std::string format_distance(double metres) {
  return metres < 10'000 ? fmt::format("{:.0f} m", metres) : fmt::format("{:.1f} km", metres / 1000);
}

// "Point 8.55 47.37", or "Polygon".
std::string describe(std::string_view geometry) {
  std::string text = member_text(geometry, "type");
  if (text != "Point") return text;
  json::for_each_element(json::member(geometry, "coordinates").value_or("[]"), [&](std::string_view number) {
    text += fmt::format(" {}", number);
    return true;
  });
  return text;
}

}  // namespace

void show_near(const NearOptions& options) {
  const auto [design, index] = split_pair(options.index, '/', "DESIGN/INDEX");
  const auto [latitude, longitude] = split_pair(options.at, ',', "LATITUDE,LONGITUDE");
  std::string target = fmt::format("/{}/_design/{}/_geo/{}?nearest=true&limit={}&lat={}&lon={}",
                                   http::percent_encode(options.database), http::percent_encode(design),
                                   http::percent_encode(index), options.limit, http::percent_encode(latitude),
                                   http::percent_encode(longitude));
  if (!options.radius.empty()) target += "&radius=" + http::percent_encode(options.radius);
  http::Client client = connect(options.query.connection);
  const auto response = fetch(options.query, client, target);
  if (!response) return;
  std::vector<Row> rows = {{"DISTANCE", "DOCUMENT", "GEOMETRY"}};
  json::for_each_element(required_member(*response, "rows"), [&](std::string_view row) {
    const double metres = std::strtod(std::string(required_member(row, "distance")).c_str(), nullptr);
    rows.push_back({format_distance(metres), member_text(row, "id"),
                    describe(json::member(row, "geometry").value_or("{}"))});
    return true;
  });
  print_table(rows);
}

}  // namespace divan::app
