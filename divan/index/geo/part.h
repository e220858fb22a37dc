// The parts of geometries: points, lines and polygons in degrees of longitude and latitude.
#pragma once

#include <cstddef>
#include <vector>

namespace divan::index::geo {

/// In degrees. A geometry that crosses the antimeridian has longitudes beyond 180 or -180.
struct Position {
  double longitude = 0;
  double latitude = 0;
  bool operator==(const Position&) const = default;
};

/// Bounds in degrees: `west` is in [-180, 180], `east` in [west, west + 360].
struct Box {
  double west = 0, south = 0, east = 0, north = 0;
};

/// A point (one position), a line, or a polygon (its shell, then its holes; each ring is closed).
struct Part {
  enum class Kind { point, line, polygon };
  Kind kind = Kind::point;
  std::vector<std::vector<Position>> rings;  // of a point or line: one

  /// The bounds. The longitudes of the part are between them.
  Box box() const;
};

/// The most positions of a geometry.
inline constexpr std::size_t kMaxPositions = 200'000;

/// Throws bad_request unless the position is on the Earth.
void check_position(const Position& position);

}  // namespace divan::index::geo
