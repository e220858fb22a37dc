// Parses GeoJSON.
#pragma once

#include <string_view>

#include "divan/index/geo/part.h"

namespace divan::index::geo {

/// The geometry of a Feature; `json` itself if it is none. Throws bad_request if the Feature has no geometry.
std::string_view geometry_of(std::string_view json);

/// The parts of a geometry in the form of json::compact(), as written: see Geometry::from_geojson().
std::vector<Part> parse_geojson(std::string_view json);

/// The same geometry with the members that RFC 7946 defines only. `json` must have been parsed.
std::string normal_geojson(std::string_view json);

}  // namespace divan::index::geo
