// GEOS, a library of planar geometry, for geometries in degrees.
#pragma once

#include <geos_c.h>

#include <memory>
#include <string>

#include "divan/index/geo/part.h"

namespace divan::index::geo {

/// The context of the calling thread, for GEOS's functions that end with _r.
GEOSContextHandle_t geos();
/// The message of the thread's last failed call.
const std::string& geos_error();

struct GeosDeleter {
  void operator()(GEOSGeometry* geometry) const { GEOSGeom_destroy_r(geos(), geometry); }
  void operator()(const GEOSPreparedGeometry* geometry) const {
    GEOSPreparedGeom_destroy_r(geos(), geometry);
  }
};
/// Never null, unless moved from. Belongs to no thread.
using GeosGeometry = std::unique_ptr<GEOSGeometry, GeosDeleter>;
using GeosPrepared = std::unique_ptr<const GEOSPreparedGeometry, GeosDeleter>;

/// Throws bad_request with GEOS's message if `geometry`, the result of a call, is null.
GeosGeometry checked(GEOSGeometry* geometry);
/// The same for the result of a predicate, which is 2 if the call failed.
bool checked(char result);

/// A part, moved east by `offset` degrees.
GeosGeometry to_geos(const Part& part, double offset = 0);
/// Makes a collection of parts of one kind.
GeosGeometry to_multi(std::vector<GeosGeometry> parts, Part::Kind kind);

}  // namespace divan::index::geo
