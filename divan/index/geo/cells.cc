#include "divan/index/geo/cells.h"

#include <fmt/core.h>
#include <s2/s2cell.h>
#include <s2/s2latlng.h>
#include <s2/s2latlng_rect.h>
#include <s2/s2region_coverer.h>
#include <s2/s2region_union.h>

#include <algorithm>

namespace divan::index::geo {
namespace {

// Parts beyond this number are covered by their common bounds.
constexpr std::size_t kMaxCoveredParts = 64;

// The polar radius in metres. Distances on the sphere of this radius, with geodetic latitudes taken as
// spherical ones, exceed those on the ellipsoid by less than 1 %.
constexpr double kLeastRadius = 6'356'752;
constexpr double kMargin = 0.99;

S2LatLng to_s2(const Position& position) {
  return S2LatLng::FromDegrees(position.latitude, position.longitude).Normalized();
}

S2LatLngRect to_rect(const Box& box) {
  const auto latitudes =
      R1Interval(S1Angle::Degrees(box.south).radians(), S1Angle::Degrees(box.north).radians());
  if (box.east - box.west >= 360) return {latitudes, S1Interval::Full()};
  const auto west = to_s2({box.west, 0}), east = to_s2({box.east, 0});
  auto longitudes = S1Interval(west.lng().radians(), east.lng().radians());
  return S2LatLngRect(latitudes, longitudes).Expanded(S2LatLng::FromDegrees(1e-9, 1e-9));
}

std::vector<S2CellId> cover(const Geometry& geometry, int level_step) {
  S2RegionCoverer::Options options;
  options.set_max_cells(kMaxCells);
  options.set_level_mod(level_step);
  S2RegionCoverer coverer(options);
  std::vector<std::unique_ptr<S2Region>> regions;
  if (geometry.parts().size() > kMaxCoveredParts) {
    auto all = S2LatLngRect::Empty();
    for (const auto& part : geometry.parts()) all = all.Union(to_rect(part.box()));
    regions.push_back(std::make_unique<S2LatLngRect>(all));
  } else {
    for (const auto& part : geometry.parts())
      regions.push_back(std::make_unique<S2LatLngRect>(to_rect(part.box())));
  }
  std::vector<S2CellId> cells;
  coverer.GetCovering(S2RegionUnion(std::move(regions)), &cells);
  return cells;
}

std::vector<CellRange> disjoint(std::vector<CellRange> ranges) {
  std::ranges::sort(ranges, {}, &CellRange::first);
  std::vector<CellRange> disjoint;
  for (const auto& range : ranges) {
    if (!disjoint.empty() && range.first <= disjoint.back().last) {
      disjoint.back().last = std::max(disjoint.back().last, range.last);
    } else {
      disjoint.push_back(range);
    }
  }
  return disjoint;
}

}  // namespace

std::string cell_name(Cell cell) { return fmt::format("{:016x}", cell); }

Cell leaf_cell(const Position& position) { return S2CellId(to_s2(position)).id(); }

std::vector<Cell> covering_cells(const Geometry& geometry) {
  if (geometry.is_point()) return {leaf_cell(geometry.parts().front().rings.front().front())};
  std::vector<Cell> cells;
  for (const auto cell : cover(geometry, kLevelStep)) cells.push_back(cell.id());
  std::ranges::sort(cells);
  return cells;
}

std::vector<Cell> query_cells(const Geometry& geometry) {
  std::vector<Cell> cells;
  for (const auto cell : cover(geometry, 1)) cells.push_back(cell.id());
  return cells;
}

std::vector<CellRange> cells_below(const std::vector<Cell>& cells) {
  std::vector<CellRange> ranges;
  for (const auto cell : cells) ranges.push_back(cells_below(cell));
  return disjoint(std::move(ranges));
}

std::vector<CellRange> intersecting_cells(const std::vector<Cell>& cells) {
  std::vector<CellRange> ranges;
  for (const auto cell : cells) {
    ranges.push_back(cells_below(cell));
    for (const auto above : ancestors(cell)) ranges.push_back({above, above});
  }
  return disjoint(std::move(ranges));
}
std::vector<Cell> top_cells() {
  std::vector<Cell> cells;
  for (int face = 0; face < 6; ++face) cells.push_back(S2CellId::FromFace(face).id());
  return cells;
}

std::vector<Cell> ancestors(Cell cell) {
  std::vector<Cell> cells;
  for (S2CellId id(cell); id.level() > 0;) {
    id = id.parent();
    if (is_indexed(id.id())) cells.push_back(id.id());
  }
  return cells;
}

bool is_indexed(Cell cell) { return S2CellId(cell).level() % kLevelStep == 0; }

std::vector<Cell> children(Cell cell) {
  const S2CellId id(cell);
  std::vector<Cell> cells;
  if (id.is_leaf()) return cells;
  for (int i = 0; i < 4; ++i) cells.push_back(id.child(i).id());
  return cells;
}

CellRange cells_below(Cell cell) {
  const S2CellId id(cell);
  return {id.range_min().id(), id.range_max().id()};
}

double least_distance(const Position& from, Cell cell) {
  const auto angle = S2Cell(S2CellId(cell)).GetDistance(to_s2(from).ToPoint());
  return angle.ToAngle().radians() * kLeastRadius * kMargin;
}

}  // namespace divan::index::geo
