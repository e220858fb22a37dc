#include "divan/index/geo/geos.h"

#include <fmt/core.h>

#include <ctime>
#include <optional>
#include <stdexcept>

namespace divan::index::geo {
namespace {

constexpr const char* kTooLong = "the time limit is exceeded";

// Not in the context: GEOS calls check_time() on threads that have none yet, too.
thread_local std::optional<Duration> deadline;

// GEOS calls this function in its loops. An exception ends the call, which then fails with its message.
void check_time() {
  if (deadline && thread_time() > *deadline) throw std::runtime_error(kTooLong);
}

struct Context {
  Context() {
    GEOS_interruptRegisterCallback(check_time);
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

Duration thread_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

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
