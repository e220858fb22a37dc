#include "divan/index/geo/distance.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "divan/index/geo/geos.h"

namespace divan::index::geo {
namespace {

// Vincenty, Direct and inverse solutions of geodesics on the ellipsoid (1975): Flinders Peak to Buninyong, on
// WGS 84.
TEST(DistanceTest, DistancesAreGeodesic) {
  EXPECT_NEAR(distance(Position{144.42486789, -37.95103342}, Position{143.92649553, -37.65282114}), 54972.27,
              0.05);
  EXPECT_NEAR(distance(Position{0, 0}, Position{180, 0}), 20003931.46, 1);
  const auto square = Geometry::from_wkt("POLYGON((1 -1, 2 -1, 2 1, 1 1, 1 -1))");
  EXPECT_NEAR(distance(Position{0, 0}, square), distance(Position{0, 0}, Position{1, 0}), 0.01);
  EXPECT_EQ(distance(Position{1.5, 0}, square), 0);
  const auto across = Geometry::from_wkt("POLYGON((170 -20, -170 -20, -170 -10, 170 -10, 170 -20))");
  EXPECT_EQ(distance(Position{-175, -15}, across), 0);
  EXPECT_NEAR(distance(Position{-169, -15}, across), distance(Position{-169, -15}, Position{-170, -15}), 20);
}

TEST(DistanceTest, ALineContainsItsPoints) {
  for (const double south : {5, 20, 45, 60, 75, 85}) {
    const auto line = Geometry::from_wkt(fmt::format("LINESTRING(20 {}, 20.45 {})", south, south + 0.45));
    for (const double share : {0.1, 0.5, 0.77}) {
      const Position position{20 + 0.45 * share, south + 0.45 * share};
      EXPECT_LT(distance(position, line), 0.001) << south << ' ' << share;
    }
  }
  const auto parallel = Geometry::from_wkt("LINESTRING(-100 60, 60 60)");
  EXPECT_LT(distance(Position{-17.3, 60}, parallel), 0.001);
}

// The nearest point on the sphere is another one: degrees of longitude and latitude differ on the ellipsoid.
TEST(DistanceTest, TheNearestPointIsThatOnTheEllipsoid) {
  const auto points = Geometry::from_wkt("MULTIPOINT((10.02 0), (0 10.05))");
  EXPECT_EQ(distance(Position{0, 0}, points), distance(Position{0, 0}, Position{0, 10.05}));
  const auto square = Geometry::from_wkt("POLYGON((0 0, 0.001 0, 0.001 0.001, 0 0.001, 0 0))");
  EXPECT_NEAR(distance(Position{0.0003, -1e-7}, square), distance(Position{0, 0}, Position{0, 1e-7}), 1e-4);
}

// Every position of a line against all points of its edges, a thousandth of an edge apart.
TEST(DistanceTest, DistancesToLinesAreThoseToTheirPoints) {
  std::mt19937 generator(7);
  const auto random = [&](double most) { return std::uniform_real_distribution(-most, most)(generator); };
  for (int run = 0; run < 60; ++run) {
    const double reach = run % 3 == 0 ? 60 : run % 3 == 1 ? 1 : 0.01;
    const Position middle{random(100), random(85 - std::min(reach, 80.0))};
    std::vector<Position> line;
    for (int i = 0; i < 4; ++i)
      line.push_back(
          {middle.longitude + random(reach), std::clamp(middle.latitude + random(reach), -90.0, 90.0)});
    std::string wkt;
    for (const auto& [longitude, latitude] : line)
      wkt += fmt::format("{}{} {}", wkt.empty() ? "" : ", ", longitude, latitude);
    const Position from{middle.longitude + random(2 * reach) / 2,
                        std::clamp(middle.latitude + random(reach), -90.0, 90.0)};
    double least = INFINITY, step = 0;
    for (std::size_t i = 1; i < line.size(); ++i) {
      Position before = line[i - 1];
      for (int share = 0; share <= 1000; ++share) {
        const Position at{line[i - 1].longitude + (line[i].longitude - line[i - 1].longitude) * share / 1000,
                          line[i - 1].latitude + (line[i].latitude - line[i - 1].latitude) * share / 1000};
        least = std::min(least, distance(from, at));
        step = std::max(step, distance(before, at));
        before = at;
      }
    }
    const double found = distance(from, Geometry::from_wkt("LINESTRING(" + wkt + ")"));
    EXPECT_LE(found, least + 0.001) << run;
    EXPECT_GE(found, least - step / 2 - 0.001) << run;
  }
}

TEST(DistanceTest, DistancesHaveATimeLimit) {
  std::string wkt;
  for (int i = 0; i < 100'000; ++i)
    wkt += fmt::format("{}{} {}", wkt.empty() ? "" : ", ", i % 2 == 0 ? -89.9 : 89.9, i % 2 == 0 ? -89 : 89);
  const auto line = Geometry::from_wkt("LINESTRING(" + wkt + ")");
  EXPECT_THROW(distance(Position{0, 1}, line), GeometryTooComplex);
}

}  // namespace
}  // namespace divan::index::geo
