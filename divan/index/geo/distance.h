// Geodesic distances on the ellipsoid of WGS 84, in metres.
#pragma once

#include "divan/index/geo/geometry.h"

namespace divan::index::geo {

double distance(const Position& from, const Position& to);
/// The distance to the nearest point of a geometry, within a millimetre; 0 inside a polygon. Throws
/// GeometryTooComplex (geos.h) if that takes too much processor time.
double distance(const Position& from, const Geometry& to);

}  // namespace divan::index::geo
