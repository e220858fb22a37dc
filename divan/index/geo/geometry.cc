#include "divan/index/geo/geometry.h"

#include <fmt/core.h>

#include <GeographicLib/Geodesic.hpp>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/index/geo/geojson.h"
#include "divan/index/geo/geos.h"

namespace divan::index::geo {
namespace {

// Moves the positions after an edge that crosses the antimeridian by whole turns, so that edges do not jump.
// RFC 7946 has an exception: the edge from -180 to 180.
void unwrap(std::vector<Position>& positions) {
  double turns = 0, before = positions.front().longitude;
  for (auto& position : positions) {
    const double step = position.longitude - before;
    before = position.longitude;
    if (step > 180 && step < 360) turns -= 360;
    if (step < -180 && step > -360) turns += 360;
    position.longitude += turns;
  }
}

void move(std::vector<Position>& positions, double offset) {
  for (auto& position : positions) position.longitude += offset;
}

// The latitude of the pole that is nearer to a ring.
double nearer_pole(const std::vector<Position>& ring) {
  double sum = 0;
  for (const auto& position : ring) sum += position.latitude;
  return sum < 0 ? -90 : 90;
}

void close_by_way_of(std::vector<Position>& ring, double pole) {
  const double first = ring.front().longitude, last = ring.back().longitude;
  ring.push_back({last, pole});
  ring.push_back({first, pole});
  ring.push_back(ring.front());
}

double west_of(const std::vector<Position>& ring) {
  return std::ranges::min_element(ring, {}, &Position::longitude)->longitude;
}

// The part, moved by whole turns, so that its western end is in [-180, 180).
Part in_the_west(Part part) {
  if (part.kind == Part::Kind::point) return part;
  const double offset = -360 * std::floor((west_of(part.rings.front()) + 180) / 360);
  for (auto& ring : part.rings) move(ring, offset);
  return part;
}

// An unwrapped part, with rings that are closed and with the western end in [-180, 180).
Part normalized(Part part) {
  if (part.kind == Part::Kind::polygon) {
    for (auto& ring : part.rings) {
      if (ring.back().longitude != ring.front().longitude) close_by_way_of(ring, nearer_pole(ring));
    }
  }
  part = in_the_west(std::move(part));
  // Holes are inside of the shell.
  for (std::size_t i = 1; i < part.rings.size(); ++i) {
    const double shell = west_of(part.rings.front());
    while (west_of(part.rings[i]) < shell) move(part.rings[i], 360);
  }
  return part;
}

// A line that goes around the Earth, in pieces that do not.
std::vector<Part> pieces_of(Part line) {
  std::vector<Part> pieces;
  auto& positions = line.rings.front();
  unwrap(positions);
  std::vector<Position> piece{positions.front()};
  for (std::size_t i = 1; i < positions.size(); ++i) {
    piece.push_back(positions[i]);
    const bool is_wide = std::abs(positions[i].longitude - piece.front().longitude) > 180;
    if (!is_wide && i + 1 < positions.size()) continue;
    pieces.push_back({Part::Kind::line, {std::exchange(piece, {positions[i]})}});
  }
  return pieces;
}

// How often an unwrapped ring goes around the Earth, to the east.
int turns_of(const std::vector<Position>& ring) {
  return static_cast<int>(std::lround((ring.back().longitude - ring.front().longitude) / 360));
}

GeosGeometry plane() { return checked(GEOSGeom_createRectangle_r(geos(), -180, -90, 180, 90)); }

// What an unwrapped ring that goes around the Earth encloses, in the longitudes from -180 to 180. The ring
// may go back and forth there, so it is repeated in the west and in the east, and cut. It is closed where it
// is farthest in the west and in the east, so that it does not cross the way to the pole.
GeosGeometry inside_around_pole(std::vector<Position> ring) {
  if (turns_of(ring) < 0) std::ranges::reverse(ring);
  if (turns_of(ring) != 1) throw bad_request("Invalid geometry: a ring goes around the Earth more than once");
  move(ring, -360 * std::floor((ring.front().longitude + 180) / 360) - 360);
  std::vector<Position> repeated = ring;
  for (int turn = 1; turn < 3; ++turn) {
    move(ring, 360);
    repeated.insert(repeated.end(), ring.begin() + 1, ring.end());
  }
  const double pole = nearer_pole(ring);
  const auto order = [pole](const Position& position) {
    return std::pair(position.longitude, std::abs(pole - position.latitude));
  };
  const auto reverse_order = [pole](const Position& position) {
    return std::pair(-position.longitude, std::abs(pole - position.latitude));
  };
  repeated.erase(std::ranges::min_element(repeated, {}, reverse_order) + 1, repeated.end());
  repeated.erase(repeated.begin(), std::ranges::min_element(repeated, {}, order));
  close_by_way_of(repeated, pole);
  const auto shape = to_geos(Part{Part::Kind::polygon, {std::move(repeated)}});
  if (!checked(GEOSisValid_r(geos(), shape.get())))
    throw bad_request("Invalid geometry: a ring around a pole intersects itself");
  return checked(GEOSIntersection_r(geos(), shape.get(), plane().get()));
}

// The parts, in the longitudes from -180 to 180, of an unwrapped polygon whose shell goes around the Earth.
std::vector<Part> parts_around_pole(const Part& polygon) {
  const GeosTimeLimit limit(kGeosTime);
  auto shape = inside_around_pole(polygon.rings.front());
  for (std::size_t i = 1; i < polygon.rings.size(); ++i) {
    auto ring = polygon.rings[i];
    if (turns_of(ring) != 0) {
      const auto hole = inside_around_pole(std::move(ring));
      shape = checked(GEOSDifference_r(geos(), shape.get(), hole.get()));
      continue;
    }
    const Part hole = in_the_west({Part::Kind::polygon, {std::move(ring)}});
    for (const double turn : {0.0, -360.0})
      shape = checked(GEOSDifference_r(geos(), shape.get(), to_geos(hole, turn).get()));
  }
  auto parts = polygons_of(*shape);
  if (parts.empty()) throw bad_request("Invalid geometry: its holes are as large as its shell");
  return parts;
}

// Returns true if a ring, unwrapped, cannot be closed by way of the pole: it goes back and forth where it
// begins, or it is a hole, whose edges there would be those of the shell.
bool must_be_cut(const Part& polygon) {
  if (turns_of(polygon.rings.front()) == 0) return false;
  const auto box = polygon.box();
  return box.east - box.west > 360 || std::any_of(polygon.rings.begin() + 1, polygon.rings.end(),
                                                  [](const auto& hole) { return turns_of(hole) != 0; });
}

bool is_around_the_earth(const Part& part) {
  const auto box = part.box();
  return box.east - box.west > 360;
}

std::vector<Part> normalized(std::vector<Part> parts) {
  std::vector<Part> all;
  for (auto& part : parts) {
    auto unwrapped = part;
    for (auto& ring : unwrapped.rings) unwrap(ring);
    if (part.kind == Part::Kind::polygon && must_be_cut(unwrapped)) {
      std::ranges::move(parts_around_pole(unwrapped), std::back_inserter(all));
      continue;
    }
    auto one = normalized(std::move(unwrapped));
    if (!is_around_the_earth(one)) {
      all.push_back(std::move(one));
    } else if (part.kind == Part::Kind::polygon) {
      throw bad_request("Invalid geometry: a ring goes around the Earth more than once");
    } else {
      for (auto& piece : pieces_of(std::move(part))) all.push_back(in_the_west(std::move(piece)));
    }
  }
  return all;
}

struct WktDeleter {
  void operator()(GEOSWKTReader* reader) const { GEOSWKTReader_destroy_r(geos(), reader); }
  void operator()(GEOSGeoJSONWriter* writer) const { GEOSGeoJSONWriter_destroy_r(geos(), writer); }
  void operator()(char* text) const { GEOSFree_r(geos(), text); }
};

// Checks what GEOS's parser does not: it calls itself for each nested collection, has no limit of positions,
// and ignores what follows the geometry.
void check_wkt(std::string_view text) {
  constexpr int kMaxDepth = 12;
  int depth = 0;
  bool has_ended = false;
  for (const char c : text) {
    if (c == '\0') throw bad_request("Invalid geometry: it has a zero byte");
    if (has_ended && std::string_view(" \t\r\n").find(c) == std::string_view::npos)
      throw bad_request("Invalid geometry: something follows its last parenthesis");
    if (c == '(' && ++depth > kMaxDepth)
      throw bad_request("Invalid geometry: its parentheses are nested too deeply");
    if (c == ')') has_ended = --depth <= 0;
  }
  if (std::ranges::count(text, ',') >= static_cast<std::ptrdiff_t>(kMaxPositions))
    throw bad_request(fmt::format("Invalid geometry: it has more than {} positions", kMaxPositions));
}

const GeographicLib::Geodesic& ellipsoid() { return GeographicLib::Geodesic::WGS84(); }

}  // namespace

Geometry Geometry::from_geojson(std::string_view json) {
  return Geometry(normalized(parse_geojson(geometry_of(json))));
}

Geometry Geometry::from_wkt(const std::string& text) {
  check_wkt(text);
  const std::unique_ptr<GEOSWKTReader, WktDeleter> reader(GEOSWKTReader_create_r(geos()));
  const auto geometry = checked(GEOSWKTReader_read_r(geos(), reader.get(), text.c_str()));
  const std::unique_ptr<GEOSGeoJSONWriter, WktDeleter> writer(GEOSGeoJSONWriter_create_r(geos()));
  const std::unique_ptr<char, WktDeleter> json(
      GEOSGeoJSONWriter_writeGeometry_r(geos(), writer.get(), geometry.get(), -1));
  if (!json) throw geos_failure();
  return from_geojson(json::compact(json.get()));
}

Geometry Geometry::rectangle(const Box& bounds) {
  check_position({bounds.west, bounds.south});
  check_position({bounds.east, bounds.north});
  if (bounds.south > bounds.north)
    throw bad_request(fmt::format("Invalid bounds: the southern one {} is north of the northern one {}",
                                  bounds.south, bounds.north));
  const double east = bounds.west > bounds.east ? bounds.east + 360 : bounds.east;
  Part part;
  if (bounds.west == east && bounds.south == bounds.north) {
    part = {Part::Kind::point, {{{bounds.west, bounds.south}}}};
  } else if (bounds.west == east || bounds.south == bounds.north) {
    part = {Part::Kind::line, {{{bounds.west, bounds.south}, {east, bounds.north}}}};
  } else {
    part = {Part::Kind::polygon,
            {{{bounds.west, bounds.south},
              {east, bounds.south},
              {east, bounds.north},
              {bounds.west, bounds.north},
              {bounds.west, bounds.south}}}};
  }
  return Geometry(std::vector{std::move(part)});
}

Geometry Geometry::ellipse(Position centre, double east_west, double north_south) {
  check_position(centre);
  for (const double range : {east_west, north_south}) {
    if (!(range > 0 && range <= kMaxRange))
      throw bad_request(
          fmt::format("Invalid range: {} is not a number of metres from 0 to {}", range, kMaxRange));
  }
  std::vector<Position> ring;
  for (std::size_t i = 0; i < kEllipseVertices; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / kEllipseVertices;
    const double east = east_west * std::cos(angle), north = north_south * std::sin(angle);
    Position vertex;
    ellipsoid().Direct(centre.latitude, centre.longitude, std::atan2(east, north) * 180 / std::numbers::pi,
                       std::hypot(east, north), vertex.latitude, vertex.longitude);
    ring.push_back(vertex);
  }
  ring.push_back(ring.front());
  return Geometry(normalized(std::vector{Part{Part::Kind::polygon, {std::move(ring)}}}));
}

Box Geometry::bounds() const {
  double south = 90, north = -90;
  std::vector<std::pair<double, double>> spans;  // of longitudes
  for (const auto& part : parts_) {
    const auto box = part.box();
    south = std::min(south, box.south);
    north = std::max(north, box.north);
    spans.emplace_back(box.west, box.east);
  }
  std::ranges::sort(spans);
  // What reaches farthest east is also before the span that is farthest west.
  double reach = std::ranges::max(spans, {}, [](const auto& span) { return span.second; }).second - 360;
  double gap = 0, after_gap = spans.front().first;
  for (const auto& [west, east] : spans) {
    if (west - reach > gap) {
      gap = west - reach;
      after_gap = west;
    }
    reach = std::max(reach, east);
  }
  return {.west = after_gap, .south = south, .east = after_gap + 360 - gap, .north = north};
}

Position Geometry::middle() const {
  const auto box = bounds();
  return {std::remainder((box.west + box.east) / 2, 360), (box.south + box.north) / 2};
}

std::size_t Geometry::positions() const {
  std::size_t count = 0;
  for (const auto& part : parts_) {
    for (const auto& ring : part.rings) count += ring.size();
  }
  return count;
}

void Geometry::check_valid() const {
  const GeosTimeLimit limit(kGeosTime);
  std::vector<GeosGeometry> polygons;
  for (const auto& part : parts_) {
    if (part.kind == Part::Kind::polygon) polygons.push_back(to_geos(part));
  }
  if (polygons.empty()) return;
  const auto shape = to_multi(std::move(polygons), Part::Kind::polygon);
  char* reason = nullptr;
  GEOSGeometry* place = nullptr;
  const char valid = GEOSisValidDetail_r(geos(), shape.get(), 0, &reason, &place);
  const std::unique_ptr<char, WktDeleter> owned(reason);
  const GeosGeometry owned_place(place);
  if (checked(valid)) return;
  double x = 0, y = 0;
  if (place != nullptr) {
    GEOSGeomGetX_r(geos(), place, &x);
    GEOSGeomGetY_r(geos(), place, &y);
  }
  throw bad_request(fmt::format("Invalid geometry: {} at {} {}", reason ? reason : "not valid", x, y));
}

}  // namespace divan::index::geo
