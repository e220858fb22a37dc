// GEOS, a library of planar geometry, for geometries in degrees.
#pragma once

#include <geos_c.h>

#include <memory>
#include <vector>

#include "divan/base/clock.h"
#include "divan/base/error.h"
#include "divan/index/geo/part.h"

namespace divan::index::geo {

/// The context of the calling thread, for GEOS's functions that end with _r.
GEOSContextHandle_t geos();
/// The error of the thread's last failed call: GeometryTooComplex, or bad_request with GEOS's message.
Error geos_failure();

/// GEOS took too long for a geometry.
class GeometryTooComplex final : public Error {
 public:
  GeometryTooComplex()
      : Error(413, "geometry_too_complex", "It takes too much processor time to compare the geometry.") {}
};

/// Limits the processor time that the calling thread spends in GEOS while it exists, since that can grow with
/// the square of a geometry's size: checked() then throws GeometryTooComplex, and so does check_time(). Has
/// no effect within another one.
class GeosTimeLimit {
 public:
  explicit GeosTimeLimit(Duration limit);
  ~GeosTimeLimit();
  GeosTimeLimit(const GeosTimeLimit&) = delete;
  GeosTimeLimit& operator=(const GeosTimeLimit&) = delete;

 private:
  const bool is_outermost_;
};
inline constexpr Duration kGeosTime = std::chrono::seconds(1);

/// Throws GeometryTooComplex if the calling thread's limit is exceeded. For loops that are not GEOS's.
void check_time();

/// Limits the processor time of one comparison, and of all that have the same `spent`, to ten seconds. It
/// throws GeometryTooComplex if these are exceeded already.
class ComparisonTime {
 public:
  explicit ComparisonTime(Duration& spent);
  ~ComparisonTime();
  ComparisonTime(const ComparisonTime&) = delete;
  ComparisonTime& operator=(const ComparisonTime&) = delete;

 private:
  Duration& spent_;
  const Duration began_;
  const GeosTimeLimit limit_;
};

struct GeosDeleter {
  void operator()(GEOSGeometry* geometry) const { GEOSGeom_destroy_r(geos(), geometry); }
  void operator()(const GEOSPreparedGeometry* geometry) const {
    GEOSPreparedGeom_destroy_r(geos(), geometry);
  }
};
/// Never null, unless moved from. Belongs to no thread.
using GeosGeometry = std::unique_ptr<GEOSGeometry, GeosDeleter>;
using GeosPrepared = std::unique_ptr<const GEOSPreparedGeometry, GeosDeleter>;

/// Throws geos_failure() if `geometry`, the result of a call, is null.
GeosGeometry checked(GEOSGeometry* geometry);
/// The same for the result of a predicate, which is 2 if the call failed.
bool checked(char result);

/// A part, moved east by `offset` degrees.
GeosGeometry to_geos(const Part& part, double offset = 0);
/// The polygons of a geometry, a polygon or a collection; what else it has is left out.
std::vector<Part> polygons_of(const GEOSGeometry& geometry);
/// Prepares a geometry, which must outlive the result, for many comparisons.
GeosPrepared prepare(const GEOSGeometry& geometry);
/// Makes a collection of parts of one kind.
GeosGeometry to_multi(std::vector<GeosGeometry> parts, Part::Kind kind);

}  // namespace divan::index::geo
