// Parses GeoJSON.
#pragma once

#include <string_view>

#include "divan/index/geo/part.h"

namespace divan::index::geo {

/// The parts of a geometry or Feature in the form of json::compact(), as written: see
/// Geometry::from_geojson().
std::vector<Part> parse_geojson(std::string_view json);

}  // namespace divan::index::geo
