// Geometries of clients: any text is refused with an error of the client's, or is a geometry with which
// queries and indexes can do everything; and what a geometry intersects is found by its cells.
#include <algorithm>

#include "divan/base/json.h"
#include "divan/index/geo/cells.h"
#include "divan/index/geo/distance.h"
#include "divan/index/geo/matcher.h"
#include "divan/index/geo/params.h"
#include "fuzz/check.h"

namespace {

using divan::fuzz::answers;
using divan::fuzz::check;
using namespace divan::index::geo;

bool may_be_found(const std::vector<Cell>& cells, const std::vector<CellRange>& ranges) {
  return std::ranges::any_of(cells, [&](Cell cell) {
    return std::ranges::any_of(ranges, [&](const CellRange& range) { return range.contains(cell); });
  });
}

void use(const Geometry& geometry) {
  geometry.check_valid();
  const auto cells = covering_cells(geometry);
  check(!cells.empty() && cells.size() <= 64);
  check(std::ranges::is_sorted(cells));
  check(may_be_found(cells, intersecting_cells(query_cells(geometry))));
  static const Geometry kOthers[] = {
      Geometry::rectangle({-10, -10, 10, 10}), Geometry::rectangle({170, -20, -170, 20}),
      Geometry::ellipse({30, 89}, 500'000, 500'000), Geometry::from_wkt("LINESTRING(-120 40, 120 -40)")};
  for (const auto& other : kOthers) {
    for (const auto relation : {Relation::intersects, Relation::contains, Relation::touches}) {
      const bool matches = Matcher(geometry, relation).matches(other);
      if (matches) check(may_be_found(covering_cells(other), intersecting_cells(query_cells(geometry))));
    }
    check(Matcher(geometry, Relation::intersects).matches(other) !=
          Matcher(geometry, Relation::disjoint).matches(other));
  }
  const double metres = distance(Position{5, 50}, geometry);
  check(metres >= 0 && metres < 20'100'000);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string text(divan::fuzz::text_of(data, size));
  answers(400, [&] {
    use(text.starts_with('{') ? Geometry::from_geojson(divan::json::compact(text))
                              : Geometry::from_wkt(text));
  });
  answers(400, [&] {
    const auto bookmark = Bookmark::decode(text);
    check(Bookmark::decode(bookmark.encode()).position == bookmark.position);
  });
  answers(400, [&] { parse_params(params_of_body(divan::json::compact(text))); });
  return 0;
}
