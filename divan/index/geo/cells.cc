#include "divan/index/geo/cells.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <numbers>
#include <tuple>
#include <utility>

namespace divan::index::geo {
namespace {

// The level of the smallest cells.
constexpr int kLastLevel = 30;
static_assert(kLastLevel % kLevelStep == 0, "indexes have the smallest cells");
constexpr int kFaces = 6;
static_assert(kFaces <= kMaxCells, "the faces cover everything");

// Parts beyond this number are covered by their common bounds.
constexpr std::size_t kMaxCoveredParts = 64;
// By so many degrees, bounds are larger than those of a part: a tenth of a millimetre.
constexpr double kTolerance = 1e-9;

// The polar radius in metres. Distances on the sphere of this radius, with geodetic latitudes taken as
// spherical ones, exceed those on the ellipsoid by less than 1 %.
constexpr double kLeastRadius = 6'356'752;
constexpr double kMargin = 0.99;
// What a distance of 0 may be computed as, in metres.
constexpr double kRounding = 1e-6;

// The lowest bit that is set, which says the level.
Cell mark(Cell cell) { return cell & (~cell + 1); }
int level(Cell cell) { return kLastLevel - std::countr_zero(cell) / 2; }
Cell child(Cell cell, unsigned quadrant) { return cell - mark(cell) + mark(cell) / 4 * (2 * quadrant + 1); }
Cell parent(Cell cell) { return (cell & ~(mark(cell) * 8 - 1)) | mark(cell) * 4; }

// The part of a face that a cell is: from -1 to 1 in both directions. All of its numbers are exact.
struct Square {
  double left = -1, bottom = -1, size = 2;
  double right() const { return left + size; }
  double top() const { return bottom + size; }
};

unsigned face_of(Cell cell) { return static_cast<unsigned>(cell >> (2 * kLastLevel + 1)); }

Square square_of(Cell cell) {
  Square square;
  for (int i = 1; i <= level(cell); ++i) {
    const auto quadrant = cell >> (2 * (kLastLevel - i) + 1);
    square.size /= 2;
    if ((quadrant & 1) != 0) square.left += square.size;
    if ((quadrant & 2) != 0) square.bottom += square.size;
  }
  return square;
}

constexpr unsigned kNorth = 4, kSouth = 5;

double radians(double degrees) { return degrees * std::numbers::pi / 180; }
double degrees(double radians) { return radians * 180 / std::numbers::pi; }
// The coordinate on the plane of a face, from -1 to 1, of one in angles, and the reverse.
double on_plane(double share) { return std::tan(share * std::numbers::pi / 4); }
double of_plane(double coordinate) { return std::atan(coordinate) * 4 / std::numbers::pi; }

// The bounds of a cell of the four faces along the equator: its longitudes are exact.
Box bounds_at_equator(double middle, const Square& square) {
  const double west = square.left * 45, east = square.right() * 45;
  const double least = west <= 0 && east >= 0 ? 0 : std::min(std::abs(west), std::abs(east));
  const double greatest = std::max(std::abs(west), std::abs(east));
  const auto latitude = [](double coordinate, double longitude) {
    return degrees(std::atan(on_plane(coordinate) * std::cos(radians(longitude))));
  };
  return {middle + west, latitude(square.bottom, square.bottom >= 0 ? greatest : least), middle + east,
          latitude(square.top(), square.top() >= 0 ? least : greatest)};
}

// The bounds of a cell of a face at a pole. If the pole is in the cell or on its edge, they have all
// longitudes.
Box bounds_at_pole(bool is_north, const Square& square) {
  const double left = on_plane(square.left), right = on_plane(square.right());
  const double bottom = on_plane(square.bottom), top = on_plane(square.top());
  const bool spans_x = left <= 0 && right >= 0, spans_y = bottom <= 0 && top >= 0;
  const double least = std::hypot(spans_x ? 0 : std::min(std::abs(left), std::abs(right)),
                                  spans_y ? 0 : std::min(std::abs(bottom), std::abs(top)));
  const double greatest =
      std::hypot(std::max(std::abs(left), std::abs(right)), std::max(std::abs(bottom), std::abs(top)));
  Box box{-180, 90 - degrees(std::atan(greatest)), 180, 90 - degrees(std::atan(least))};
  if (!is_north) std::tie(box.south, box.north) = std::pair(-box.north, -box.south);
  if (spans_x && spans_y) return box;
  const double middle = degrees(std::atan2(bottom + top, left + right));
  double west = 0, east = 0;
  for (const double x : {left, right}) {
    for (const double y : {bottom, top}) {
      const double longitude = std::remainder(degrees(std::atan2(y, x)) - middle, 360);
      west = std::min(west, longitude);
      east = std::max(east, longitude);
    }
  }
  box.west = middle + west;
  box.east = middle + east;
  return box;
}

Box bounds_of(Cell cell) {
  const auto face = face_of(cell);
  const auto square = square_of(cell);
  return face < kNorth ? bounds_at_equator(90.0 * face, square) : bounds_at_pole(face == kNorth, square);
}

// The least longitude that is `longitude` plus a multiple of 360, and not less than `least`.
double longitude_from(double least, double longitude) {
  return longitude + 360 * std::ceil((least - longitude) / 360);
}

bool intersects(const Box& one, const Box& other) {
  return one.south <= other.north && one.north >= other.south &&
         longitude_from(other.west, one.east) - (one.east - one.west) <= other.east;
}

bool contains(const Box& outer, const Box& inner) {
  return outer.south <= inner.south && inner.north <= outer.north &&
         longitude_from(outer.west, inner.west) + (inner.east - inner.west) <= outer.east;
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

// True if a cell may have a place in a box.
bool intersects(Cell cell, const Boxes& boxes) {
  return std::ranges::any_of(boxes,
                             [bounds = bounds_of(cell)](const Box& box) { return intersects(bounds, box); });
}

bool is_inside(Cell cell, const Boxes& boxes) {
  return std::ranges::any_of(boxes,
                             [bounds = bounds_of(cell)](const Box& box) { return contains(box, bounds); });
}

// The cells that intersect any of the boxes, `levels` below a cell.
void append_below(Cell cell, int levels, const Boxes& boxes, std::vector<Cell>& below) {
  for (const auto one : children(cell)) {
    if (!intersects(one, boxes)) continue;
    levels == 1 ? below.push_back(one) : append_below(one, levels - 1, boxes, below);
  }
}

// The largest cells are replaced by smaller ones, as long as there are few.
std::vector<Cell> cover(const Geometry& geometry, bool is_for_index) {
  const auto boxes = boxes_of(geometry);
  std::vector<Cell> covering;
  std::deque<Cell> divisible;
  for (const auto cell : top_cells()) {
    if (intersects(cell, boxes)) divisible.push_back(cell);
  }
  for (; !divisible.empty(); divisible.pop_front()) {
    const Cell cell = divisible.front();
    if (level(cell) == kLastLevel || is_inside(cell, boxes)) {
      covering.push_back(cell);
      continue;
    }
    std::vector<Cell> below;
    append_below(cell, is_for_index && level(cell) >= kLevelStep ? kLevelStep : 1, boxes, below);
    if (covering.size() + divisible.size() - 1 + below.size() > kMaxCells) {
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

// Radians from a place to the nearest of a box.
double angle_to(const Box& box, const Position& from) {
  const double south = radians(box.south), north = radians(box.north), latitude = radians(from.latitude);
  if (longitude_from(box.west, from.longitude) <= box.east)
    return std::max({0.0, south - latitude, latitude - north});
  // It is on the side that is nearer. The great circle of that side, and its point that is nearest:
  const double beside = radians(std::min(std::abs(std::remainder(from.longitude - box.west, 360)),
                                         std::abs(std::remainder(from.longitude - box.east, 360))));
  const double nearest = std::atan2(std::sin(latitude), std::cos(latitude) * std::cos(beside));
  if (south <= nearest && nearest <= north) return angle_between(nearest, latitude, beside);
  return std::min(angle_between(south, latitude, beside), angle_between(north, latitude, beside));
}

}  // namespace

std::string cell_name(Cell cell) { return fmt::format("{:016x}", cell); }

Cell leaf_cell(const Position& position) {
  const double latitude = radians(position.latitude), longitude = radians(position.longitude);
  const double z = std::sin(latitude), x = std::cos(latitude) * std::cos(longitude),
               y = std::cos(latitude) * std::sin(longitude);
  unsigned face = z > 0 ? kNorth : kSouth;
  double right = 0, up = 0;
  if (std::abs(z) > std::max(std::abs(x), std::abs(y))) {
    right = of_plane(x / std::abs(z));
    up = of_plane(y / std::abs(z));
  } else {
    const double turn = std::round(position.longitude / 90);
    const double beside = position.longitude - 90 * turn;
    face = static_cast<unsigned>(static_cast<int>(turn) & 3);
    right = beside / 45;
    up = of_plane(z / std::cos(latitude) / std::cos(radians(beside)));
  }
  Cell cell = top_cells()[face];
  for (Square square; level(cell) < kLastLevel;) {
    square.size /= 2;
    const bool is_right = right >= square.right(), is_up = up >= square.top();
    if (is_right) square.left += square.size;
    if (is_up) square.bottom += square.size;
    cell = child(cell, (is_right ? 1U : 0U) + (is_up ? 2U : 0U));
  }
  return cell;
}

std::vector<Cell> covering_cells(const Geometry& geometry) {
  if (geometry.is_point()) return {leaf_cell(geometry.parts().front().rings.front().front())};
  return cover(geometry, true);
}

std::vector<Cell> query_cells(const Geometry& geometry) { return cover(geometry, false); }

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
  std::vector<Cell> cells;
  for (Cell face = 0; face < kFaces; ++face) cells.push_back(face * 2 * kMark + kMark);
  return cells;
}

std::vector<Cell> ancestors(Cell cell) {
  std::vector<Cell> cells;
  while (level(cell) > 0) {
    cell = parent(cell);
    if (is_indexed(cell)) cells.push_back(cell);
  }
  return cells;
}

bool is_indexed(Cell cell) { return level(cell) < kLevelStep || level(cell) % kLevelStep == 0; }

std::vector<Cell> children(Cell cell) {
  if (level(cell) == kLastLevel) return {};
  return {child(cell, 0), child(cell, 1), child(cell, 2), child(cell, 3)};
}

CellRange cells_below(Cell cell) { return {cell - mark(cell) + 1, cell + mark(cell) - 1}; }

double least_distance(const Position& from, Cell cell) {
  return std::max(0.0, angle_to(bounds_of(cell), from) * kLeastRadius * kMargin - kRounding);
}

}  // namespace divan::index::geo
