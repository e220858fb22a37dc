#include "divan/index/geo/distance.h"

#include <GeographicLib/Geodesic.hpp>
#include <algorithm>
#include <boost/math/tools/minima.hpp>
#include <cmath>
#include <limits>
#include <numbers>

#include "divan/index/geo/geos.h"

namespace divan::index::geo {
namespace {

// A geodesic is not shorter than this for each radian of the angle on a sphere with the same latitudes: the
// least radius of curvature, that of a meridian at the equator.
constexpr double kLeastMetresOfARadian = 6'335'400;
// A degree of a meridian, or of the equator, is not longer.
constexpr double kMostMetresOfADegree = 111'700;
// Edges that are shorter, in degrees, have one point at most from which the distance grows in both
// directions.
constexpr double kShortEdge = 0.5;
// Of the place of the nearest point on a short edge: a hundredth of a millimetre.
constexpr int kPrecisionBits = 30;
constexpr std::size_t kEdgesBetweenChecks = 64;

// A point of the unit sphere.
struct Vector {
  double x = 0, y = 0, z = 0;
};

Vector to_vector(const Position& position) {
  const double longitude = position.longitude * std::numbers::pi / 180;
  const double latitude = position.latitude * std::numbers::pi / 180;
  return {std::cos(latitude) * std::cos(longitude), std::cos(latitude) * std::sin(longitude),
          std::sin(latitude)};
}

Position between(const Position& begin, const Position& end, double share) {
  return {begin.longitude + (end.longitude - begin.longitude) * share,
          begin.latitude + (end.latitude - begin.latitude) * share};
}

// An upper bound of the length of an edge.
double most_metres(const Position& begin, const Position& end) {
  const bool crosses_equator = (begin.latitude < 0) != (end.latitude < 0);
  const double latitude = crosses_equator ? 0 : std::min(std::abs(begin.latitude), std::abs(end.latitude));
  const double east = (end.longitude - begin.longitude) * std::cos(latitude * std::numbers::pi / 180);
  return kMostMetresOfADegree * std::hypot(east, end.latitude - begin.latitude);
}

// Finds the distance to the nearest point of lines. An edge, or a piece of it, is skipped if its ends are so
// far away that none of its points can be nearer than the best one so far.
class NearestPoint {
 public:
  explicit NearestPoint(const Position& from) : from_(from), vector_(to_vector(from)) {}

  void add(const std::vector<Position>& line) {
    std::vector<double> least;
    least.reserve(line.size());
    for (const auto& position : line) least.push_back(least_distance(position));
    const auto nearest = std::ranges::min_element(least) - least.begin();
    if (least[static_cast<std::size_t>(nearest)] <= metres_)
      take(distance(from_, line[static_cast<std::size_t>(nearest)]));
    for (std::size_t i = 1; i < line.size(); ++i) {
      if (++edges_ % kEdgesBetweenChecks == 0) check_time();
      add_edge(line[i - 1], least[i - 1], line[i], least[i]);
    }
  }

  double metres() const { return metres_; }

 private:
  // A lower bound that takes less time than the distance.
  double least_distance(const Position& position) const {
    const Vector to = to_vector(position);
    const double chord = std::hypot(to.x - vector_.x, to.y - vector_.y, to.z - vector_.z);
    return kLeastMetresOfARadian * 2 * std::asin(std::min(1.0, chord / 2));
  }

  // `from_begin`, `from_end`: lower bounds of the distances to the ends.
  void add_edge(const Position& begin, double from_begin, const Position& end, double from_end) {
    const double length = most_metres(begin, end);
    if (length == 0 || (from_begin + from_end - length) / 2 > metres_) return;
    const double width =
        std::max(std::abs(end.longitude - begin.longitude), std::abs(end.latitude - begin.latitude));
    if (width > kShortEdge) {
      const Position middle = between(begin, end, 0.5);
      const double from_middle = least_distance(middle);
      add_edge(begin, from_begin, middle, from_middle);
      add_edge(middle, from_middle, end, from_end);
      return;
    }
    from_begin = take(distance(from_, begin));
    from_end = take(distance(from_, end));
    if ((from_begin + from_end - length) / 2 > metres_) return;
    check_time();
    // The square, which has a derivative where the distance is 0.
    const auto squared = [&](double share) {
      const double metres = distance(from_, between(begin, end, share));
      return metres * metres;
    };
    take(std::sqrt(boost::math::tools::brent_find_minima(squared, 0.0, 1.0, kPrecisionBits).second));
  }

  double take(double metres) {
    metres_ = std::min(metres_, metres);
    return metres;
  }

  const Position from_;
  const Vector vector_;  // of `from_`
  double metres_ = std::numeric_limits<double>::infinity();
  std::size_t edges_ = 0;
};

bool covers(const Part& polygon, const Position& position) {
  const auto shape = to_geos(polygon);
  for (const double offset : {0.0, 360.0}) {
    const auto point = to_geos(Part{Part::Kind::point, {{position}}}, offset);
    if (checked(GEOSIntersects_r(geos(), shape.get(), point.get()))) return true;
  }
  return false;
}

}  // namespace

double distance(const Position& from, const Position& to) {
  double metres = 0;
  GeographicLib::Geodesic::WGS84().Inverse(from.latitude, from.longitude, to.latitude, to.longitude, metres);
  return metres;
}

double distance(const Position& from, const Geometry& to) {
  if (to.is_point()) return distance(from, to.parts().front().rings.front().front());
  const GeosTimeLimit limit(kGeosTime);
  NearestPoint nearest(from);
  for (const auto& part : to.parts()) {
    if (part.kind == Part::Kind::polygon && covers(part, from)) return 0;
    for (const auto& ring : part.rings) nearest.add(ring);
  }
  return nearest.metres();
}

}  // namespace divan::index::geo
