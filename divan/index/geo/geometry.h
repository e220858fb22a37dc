// Geometries on the Earth: points, lines and polygons in degrees of longitude and latitude (WGS 84).
//
// As in RFC 7946 (GeoJSON), an edge is a straight line in longitude and latitude. An edge whose ends differ
// by more than 180 degrees of longitude crosses the antimeridian, unless it goes from -180 to 180; a ring
// whose edges go around the Earth encloses the nearer pole.
#pragma once

#include <string>
#include <string_view>

#include "divan/index/geo/part.h"

namespace divan::index::geo {

/// A GeoJSON geometry, in parts: those of a multi-geometry or of a collection. Never empty. A value type.
class Geometry {
 public:
  /// `json`, in the form of json::compact(), is a geometry or a Feature with one. Throws bad_request, with
  /// the reason, if it is not, if a coordinate is out of range, if it has more than kMaxPositions, or if a
  /// ring goes around the Earth more than once.
  static Geometry from_geojson(std::string_view json);
  /// Well-known text, such as POLYGON((0 0, 1 0, 1 1, 0 0)). Throws as from_geojson().
  static Geometry from_wkt(const std::string& text);
  /// A rectangle whose edges are parallels and meridians; if `west` exceeds `east`, across the antimeridian.
  /// Throws bad_request if the bounds are out of range.
  static Geometry rectangle(const Box& bounds);
  /// An ellipse, or a circle, as a polygon of kEllipseVertices vertices. The ranges are in metres. Throws
  /// bad_request if they are not positive, or exceed kMaxRange.
  static Geometry ellipse(Position centre, double east_west, double north_south);

  const std::vector<Part>& parts() const { return parts_; }
  /// The number of positions in all parts.
  std::size_t positions() const;
  /// The bounds of all parts. Their longitudes end at the largest gap between those of the parts.
  Box bounds() const;
  /// The middle of its bounds.
  Position middle() const;
  bool is_point() const { return parts_.size() == 1 && parts_.front().kind == Part::Kind::point; }

  /// Throws bad_request, with the reason and the place, if a polygon is not valid: its rings intersect
  /// themselves or each other, a hole is outside of its shell, or polygons overlap. Throws GeometryTooComplex
  /// (geos.h) if that takes too long.
  void check_valid() const;

 private:
  explicit Geometry(std::vector<Part> parts) : parts_(std::move(parts)) {}

  std::vector<Part> parts_;
};

inline constexpr std::size_t kEllipseVertices = 128;
/// A quarter of a meridian, in metres: no ellipse extends beyond half of the Earth.
inline constexpr double kMaxRange = 10'001'965;

}  // namespace divan::index::geo
