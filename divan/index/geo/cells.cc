#include "divan/index/geo/cells.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <numbers>

namespace divan::index::geo {
namespace {

// The level of the smallest cells.
constexpr int kLastLevel = 30;
static_assert(kLastLevel % kLevelStep == 0, "indexes have the smallest cells");

// Parts beyond this number are covered by their common bounds.
constexpr std::size_t kMaxCoveredParts = 64;
// By so many degrees, bounds are larger than those of a part: a tenth of a millimetre.
constexpr double kTolerance = 1e-9;

// The polar radius in metres. Distances on the sphere of this radius, with geodetic latitudes taken as
// spherical ones, exceed those on the ellipsoid by less than 1 %.
constexpr double kLeastRadius = 6'356'752;
constexpr double kMargin = 0.99;

// The lowest bit that is set, which says the level.
Cell mark(Cell cell) { return cell & (~cell + 1); }
int level(Cell cell) { return kLastLevel - std::countr_zero(cell) / 2; }
Cell child(Cell cell, unsigned quadrant) { return cell - mark(cell) + mark(cell) / 4 * (2 * quadrant + 1); }
Cell parent(Cell cell) { return (cell & ~(mark(cell) * 8 - 1)) | mark(cell) * 4; }

// In degrees. All of its numbers are exact.
struct Square {
  double west = -180, south = -90, size = 180;
  double east() const { return west + size; }
  double north() const { return south + size; }
};

Square square_of(Cell cell) {
  Square square;
  if ((cell >> (2 * kLastLevel + 1)) != 0) square.west = 0;
  for (int i = 1; i <= level(cell); ++i) {
    const auto quadrant = cell >> (2 * (kLastLevel - i) + 1);
    square.size /= 2;
    if ((quadrant & 1) != 0) square.west += square.size;
    if ((quadrant & 2) != 0) square.south += square.size;
  }
  return square;
}

// The least longitude that is `longitude` plus a multiple of 360, and not less than `least`.
double longitude_from(double least, double longitude) {
  return longitude + 360 * std::ceil((least - longitude) / 360);
}

bool intersects(const Square& square, const Box& box) {
  return square.south <= box.north && square.north() >= box.south &&
         longitude_from(box.west, square.east()) - square.size <= box.east;
}

bool contains(const Box& box, const Square& square) {
  return box.south <= square.south && square.north() <= box.north &&
         longitude_from(box.west, square.west) + square.size <= box.east;
}

using Boxes = std::vector<Box>;

Boxes boxes_of(const Geometry& geometry) {
  Boxes boxes;
  if (geometry.parts().size() > kMaxCoveredParts) {
    boxes.push_back(geometry.bounds());
  } else {
    for (const auto& part : geometry.parts()) boxes.push_back(part.box());
  }
  for (auto& box : boxes)
    box = {box.west - kTolerance, box.south - kTolerance, box.east + kTolerance, box.north + kTolerance};
  return boxes;
}

bool intersects(Cell cell, const Boxes& boxes) {
  return std::ranges::any_of(boxes,
                             [square = square_of(cell)](const Box& box) { return intersects(square, box); });
}

// The cells that intersect any of the boxes, `levels` below a cell.
void append_below(Cell cell, int levels, const Boxes& boxes, std::vector<Cell>& below) {
  for (const auto one : children(cell)) {
    if (!intersects(one, boxes)) continue;
    levels == 1 ? below.push_back(one) : append_below(one, levels - 1, boxes, below);
  }
}

// The largest cells are replaced by smaller ones, as long as there are few.
std::vector<Cell> cover(const Geometry& geometry, int level_step) {
  const auto boxes = boxes_of(geometry);
  std::vector<Cell> covering;
  std::deque<Cell> divisible;
  for (const auto cell : top_cells()) {
    if (intersects(cell, boxes)) divisible.push_back(cell);
  }
  for (; !divisible.empty(); divisible.pop_front()) {
    const Cell cell = divisible.front();
    const auto is_inside = [square = square_of(cell)](const Box& box) { return contains(box, square); };
    std::vector<Cell> below;
    if (level(cell) < kLastLevel && std::ranges::none_of(boxes, is_inside))
      append_below(cell, level_step, boxes, below);
    if (below.empty() || covering.size() + divisible.size() - 1 + below.size() > kMaxCells) {
      covering.push_back(cell);
    } else {
      divisible.insert(divisible.end(), below.begin(), below.end());
    }
  }
  std::ranges::sort(covering);
  return covering;
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

// Radians between two places, of which one is at longitude 0.
double angle_between(double latitude, double other_latitude, double other_longitude) {
  const double y = std::cos(other_latitude) * std::sin(other_longitude);
  const double x = std::cos(latitude) * std::sin(other_latitude) -
                   std::sin(latitude) * std::cos(other_latitude) * std::cos(other_longitude);
  const double z = std::sin(latitude) * std::sin(other_latitude) +
                   std::cos(latitude) * std::cos(other_latitude) * std::cos(other_longitude);
  return std::atan2(std::hypot(x, y), z);
}

double radians(double degrees) { return degrees * std::numbers::pi / 180; }

// Radians from a place to the nearest of a square.
double angle_to(const Square& square, const Position& from) {
  const double south = radians(square.south), north = radians(square.north()),
               latitude = radians(from.latitude);
  if (longitude_from(square.west, from.longitude) <= square.east())
    return std::max({0.0, south - latitude, latitude - north});
  // It is on the side that is nearer. The great circle of that side, and its point that is nearest:
  const double beside = radians(std::min(std::abs(std::remainder(from.longitude - square.west, 360)),
                                         std::abs(std::remainder(from.longitude - square.east(), 360))));
  const double nearest = std::atan2(std::sin(latitude), std::cos(latitude) * std::cos(beside));
  if (south <= nearest && nearest <= north) return angle_between(nearest, latitude, beside);
  return std::min(angle_between(south, latitude, beside), angle_between(north, latitude, beside));
}

}  // namespace

std::string cell_name(Cell cell) { return fmt::format("{:016x}", cell); }

Cell leaf_cell(const Position& position) {
  const double longitude = longitude_from(-180, position.longitude);
  Cell cell = top_cells()[longitude < 0 ? 0 : 1];
  for (auto square = square_of(cell); level(cell) < kLastLevel;) {
    square.size /= 2;
    const bool is_east = longitude >= square.east(), is_north = position.latitude >= square.north();
    if (is_east) square.west += square.size;
    if (is_north) square.south += square.size;
    cell = child(cell, (is_east ? 1U : 0U) + (is_north ? 2U : 0U));
  }
  return cell;
}

std::vector<Cell> covering_cells(const Geometry& geometry) {
  if (geometry.is_point()) return {leaf_cell(geometry.parts().front().rings.front().front())};
  return cover(geometry, kLevelStep);
}

std::vector<Cell> query_cells(const Geometry& geometry) { return cover(geometry, 1); }

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
  constexpr Cell kMark = Cell{1} << (2 * kLastLevel);
  return {kMark, kMark * 3};
}

std::vector<Cell> ancestors(Cell cell) {
  std::vector<Cell> cells;
  while (level(cell) > 0) {
    cell = parent(cell);
    if (is_indexed(cell)) cells.push_back(cell);
  }
  return cells;
}

bool is_indexed(Cell cell) { return level(cell) % kLevelStep == 0; }

std::vector<Cell> children(Cell cell) {
  if (level(cell) == kLastLevel) return {};
  return {child(cell, 0), child(cell, 1), child(cell, 2), child(cell, 3)};
}

CellRange cells_below(Cell cell) { return {cell - mark(cell) + 1, cell + mark(cell) - 1}; }

double least_distance(const Position& from, Cell cell) {
  return angle_to(square_of(cell), from) * kLeastRadius * kMargin;
}

}  // namespace divan::index::geo
