#include "divan/index/geo/geos.h"

#include <fmt/core.h>

#include <ctime>
#include <optional>
#include <stdexcept>

namespace divan::index::geo {
namespace {

constexpr const char* kTooLong = "the time limit is exceeded";

// Not in the context: GEOS calls interrupt() on threads that have none yet, too.
thread_local std::optional<Duration> deadline;

// All comparisons of a query.
constexpr Duration kMostTime = std::chrono::seconds(10);

// The processor time of the calling thread.
Duration thread_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

bool is_too_late() { return deadline && thread_time() > *deadline; }

// GEOS calls this function in its loops. An exception ends the call, which then fails with its message.
void interrupt() {
  if (is_too_late()) throw std::runtime_error(kTooLong);
}

struct Context {
  Context() {
    GEOS_interruptRegisterCallback(interrupt);
    GEOSContext_setErrorMessageHandler_r(
        handle, [](const char* message, void* last) { *static_cast<std::string*>(last) = message; }, &error);
  }
  ~Context() { GEOS_finish_r(handle); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const GEOSContextHandle_t handle = GEOS_init_r();
  std::string error;
};

Context& context() {
  thread_local Context context;
  return context;
}

GEOSCoordSequence* coordinates(const std::vector<Position>& positions, double offset) {
  std::vector<double> values;
  values.reserve(2 * positions.size());
  for (const auto& position : positions) {
    values.push_back(position.longitude + offset);
    values.push_back(position.latitude);
  }
  auto* sequence =
      GEOSCoordSeq_copyFromBuffer_r(geos(), values.data(), static_cast<unsigned>(positions.size()), 0, 0);
  if (sequence == nullptr) throw geos_failure();
  return sequence;
}

std::vector<Position> positions_of(const GEOSGeometry* ring) {
  const auto* const sequence = ring == nullptr ? nullptr : GEOSGeom_getCoordSeq_r(geos(), ring);
  unsigned size = 0;
  if (sequence == nullptr || GEOSCoordSeq_getSize_r(geos(), sequence, &size) == 0) throw geos_failure();
  std::vector<double> values(2 * static_cast<std::size_t>(size));
  if (GEOSCoordSeq_copyToBuffer_r(geos(), sequence, values.data(), 0, 0) == 0) throw geos_failure();
  std::vector<Position> positions;
  for (std::size_t i = 0; i < values.size(); i += 2) positions.push_back({values[i], values[i + 1]});
  return positions;
}

GeosGeometry ring(const std::vector<Position>& positions, double offset) {
  return checked(GEOSGeom_createLinearRing_r(geos(), coordinates(positions, offset)));
}

}  // namespace

GeosTimeLimit::GeosTimeLimit(Duration limit) : is_outermost_(!deadline) {
  if (is_outermost_) deadline = thread_time() + limit;
}

GeosTimeLimit::~GeosTimeLimit() {
  if (is_outermost_) deadline.reset();
}

void check_time() {
  if (is_too_late()) throw GeometryTooComplex();
}

ComparisonTime::ComparisonTime(Duration& spent) : spent_(spent), began_(thread_time()), limit_(kGeosTime) {
  if (spent_ > kMostTime) throw GeometryTooComplex();
}

ComparisonTime::~ComparisonTime() { spent_ += thread_time() - began_; }

GEOSContextHandle_t geos() { return context().handle; }

Error geos_failure() {
  const std::string& message = context().error;
  if (message == kTooLong) return GeometryTooComplex();
  return bad_request("Invalid geometry: " + message);
}

GeosGeometry checked(GEOSGeometry* geometry) {
  if (geometry == nullptr) throw geos_failure();
  return GeosGeometry(geometry);
}

bool checked(char result) {
  if (result == 2) throw geos_failure();
  return result == 1;
}

GeosGeometry to_geos(const Part& part, double offset) {
  switch (part.kind) {
    case Part::Kind::point:
      return checked(GEOSGeom_createPoint_r(geos(), coordinates(part.rings.front(), offset)));
    case Part::Kind::line:
      return checked(GEOSGeom_createLineString_r(geos(), coordinates(part.rings.front(), offset)));
    case Part::Kind::polygon: break;
  }
  auto shell = ring(part.rings.front(), offset);
  std::vector<GeosGeometry> holes;
  for (std::size_t i = 1; i < part.rings.size(); ++i) holes.push_back(ring(part.rings[i], offset));
  std::vector<GEOSGeometry*> released;
  for (auto& hole : holes) released.push_back(hole.release());
  // Owns its arguments, even if it fails.
  return checked(GEOSGeom_createPolygon_r(geos(), shell.release(), released.data(),
                                          static_cast<unsigned>(released.size())));
}

std::vector<Part> polygons_of(const GEOSGeometry& geometry) {
  std::vector<Part> polygons;
  for (int i = 0; i < GEOSGetNumGeometries_r(geos(), &geometry); ++i) {
    const auto* const one = GEOSGetGeometryN_r(geos(), &geometry, i);
    if (one == nullptr || GEOSGeomTypeId_r(geos(), one) != GEOS_POLYGON) continue;
    Part part{Part::Kind::polygon, {positions_of(GEOSGetExteriorRing_r(geos(), one))}};
    for (int hole = 0; hole < GEOSGetNumInteriorRings_r(geos(), one); ++hole)
      part.rings.push_back(positions_of(GEOSGetInteriorRingN_r(geos(), one, hole)));
    polygons.push_back(std::move(part));
  }
  return polygons;
}

GeosPrepared prepare(const GEOSGeometry& geometry) {
  GeosPrepared prepared(GEOSPrepare_r(geos(), &geometry));
  if (!prepared) throw geos_failure();
  return prepared;
}

GeosGeometry to_multi(std::vector<GeosGeometry> parts, Part::Kind kind) {
  if (parts.size() == 1) return std::move(parts.front());
  int type = GEOS_MULTIPOINT;
  if (kind == Part::Kind::line) type = GEOS_MULTILINESTRING;
  if (kind == Part::Kind::polygon) type = GEOS_MULTIPOLYGON;
  std::vector<GEOSGeometry*> released;
  for (auto& part : parts) released.push_back(part.release());
  return checked(
      GEOSGeom_createCollection_r(geos(), type, released.data(), static_cast<unsigned>(released.size())));
}

}  // namespace divan::index::geo
