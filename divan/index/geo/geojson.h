// Parses GeoJSON.
#pragma once

#include <string_view>

#include "divan/index/geo/part.h"

namespace divan::index::geo {

/// The geometry of a Feature; returns other JSON unchanged. Throws bad_request if a Feature has no geometry.
std::string_view geometry_of(std::string_view json);

/// The parts of a geometry in the form of json::compact(), as written: see Geometry::from_geojson().
std::vector<Part> parse_geojson(std::string_view json);

/// The same geometry with only the members that RFC 7946 defines. parse_geojson() must have accepted `json`.
std::string normal_geojson(std::string_view json);

}  // namespace divan::index::geo
