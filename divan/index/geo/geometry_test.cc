#include "divan/index/geo/geometry.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "divan/base/error_testing.h"
#include "divan/index/geo/distance.h"
#include "divan/index/geo/matcher.h"

namespace divan::index::geo {
namespace {

using ::testing::HasSubstr;

bool related(Relation relation, const std::string& query, const std::string& other) {
  return Matcher(Geometry::from_wkt(query), relation).matches(Geometry::from_wkt(other));
}

std::string reason(const std::string& geojson) {
  try {
    Geometry::from_geojson(geojson).check_valid();
  } catch (const Error& error) { return error.reason(); }
  return "valid";
}

TEST(GeometryTest, ReadsEachTypeOfGeoJson) {
  const auto parts = [](std::string_view json) { return Geometry::from_geojson(json).parts().size(); };
  EXPECT_EQ(parts(R"({"type":"Point","coordinates":[1,2,300]})"), 1u);
  EXPECT_EQ(parts(R"({"type":"MultiPoint","coordinates":[[1,2],[3,4]]})"), 2u);
  EXPECT_EQ(parts(R"({"type":"LineString","coordinates":[[1,2],[3,4]]})"), 1u);
  EXPECT_EQ(parts(R"({"type":"MultiLineString","coordinates":[[[1,2],[3,4]],[[1,2],[3,4]]]})"), 2u);
  EXPECT_EQ(
      parts(R"({"type":"Polygon","coordinates":[[[0,0],[9,0],[9,9],[0,0]],[[5,1],[6,1],[6,2],[5,1]]]})"), 1u);
  EXPECT_EQ(parts(R"({"type":"MultiPolygon","coordinates":[[[[0,0],[1,0],[1,1],[0,0]]]]})"), 1u);
  EXPECT_EQ(parts(R"({"type":"Feature","properties":null,"geometry":{"type":"Point","coordinates":[1,2]}})"),
            1u);
  EXPECT_EQ(parts(R"({"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1,2]},)"
                  R"({"type":"LineString","coordinates":[[1,2],[3,4]]}]})"),
            2u);
}

TEST(GeometryTest, SaysWhatIsInvalid) {
  const std::pair<const char*, const char*> cases[] = {
      {"null", "not an object with a `type`"},
      {R"({"type":"Circle"})", "unknown `type`"},
      {R"({"type":"Feature","geometry":null})", "no geometry"},
      {R"({"type":"Feature","geometry":{"type":"Feature","geometry":{}}})", "unknown `type`"},
      {R"({"type":"MultiPolygon","coordinates":[[[[-1,-1],[1,-1],[1,1],[-1,-1]]],[[[0,-1],[3,-1],[3,3],[0,-1]]]]})",
       "Self-intersection"},
      {R"({"type":"Point"})", "a position must be an array"},
      {R"({"type":"Point","coordinates":[1]})", "a longitude and a latitude"},
      {R"({"type":"Point","coordinates":["1",2]})", "must be a number"},
      {R"({"type":"Point","coordinates":[null,2]})", "must be a number"},
      {R"({"type":"Point","coordinates":[181,2]})", "longitude 181"},
      {R"({"type":"Point","coordinates":[1,-91]})", "latitude -91"},
      {R"({"type":"LineString","coordinates":[[1,2]]})", "two positions"},
      {R"({"type":"MultiPoint","coordinates":[]})", "empty"},
      {R"({"type":"Polygon","coordinates":[]})", "must have a ring"},
      {R"({"type":"Polygon","coordinates":[[[0,0],[1,0],[0,0]]]})", "four positions"},
      {R"({"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,1]]]})", "end where it begins"},
      {R"({"type":"Polygon","coordinates":[[[0,0],[2,2],[2,0],[0,2],[0,0]]]})", "Self-intersection at 1 1"},
  };
  for (const auto& [json, expected] : cases) EXPECT_THAT(reason(json), HasSubstr(expected)) << json;
  std::string nested = R"({"type":"Point","coordinates":[1,2]})";
  for (int i = 0; i < 10; ++i) nested = R"({"type":"GeometryCollection","geometries":[)" + nested + "]}";
  EXPECT_THAT(reason(nested), HasSubstr("nested too deeply"));
  EXPECT_THROW(Geometry::from_wkt("POLYGON((0 0, 1 1"), Error);
  EXPECT_THROW(Geometry::from_wkt("POINT(nan 0)"), Error);
  EXPECT_THROW(Geometry::from_wkt("POINT(1 2) POINT(3 4)"), Error);
  EXPECT_THROW(Geometry::from_wkt(std::string("POINT(1 2)\0", 11)), Error);
  EXPECT_NO_THROW(Geometry::from_wkt(" POINT ( 1 2 ) \n"));
  std::string many = "MULTIPOINT(1 1";
  for (int i = 0; i < 200'000; ++i) many += ",1 1";
  EXPECT_THROW(Geometry::from_wkt(many + ")"), Error);
  std::string deep;
  for (int i = 0; i < 1'000'000; ++i) deep += "GEOMETRYCOLLECTION(";
  EXPECT_THROW(Geometry::from_wkt(deep), Error);
}

TEST(GeometryTest, PolygonsAcrossTheAntimeridianAreNotTheRestOfTheEarth) {
  const std::string fiji = "POLYGON((170 -20, -170 -20, -170 -10, 170 -10, 170 -20))";
  for (const char* inside : {"POINT(179 -15)", "POINT(-179 -15)", "POINT(180 -15)", "POINT(-180 -15)"}) {
    EXPECT_TRUE(related(Relation::contains, fiji, inside)) << inside;
    EXPECT_TRUE(related(Relation::within, inside, fiji)) << inside;
  }
  EXPECT_FALSE(related(Relation::intersects, fiji, "POINT(0 -15)"));
  EXPECT_TRUE(related(Relation::crosses, "LINESTRING(160 -15, -160 -15)", fiji));
  // As RFC 7946 recommends, cut in two.
  const std::string cut =
      "MULTIPOLYGON(((175 -18, 180 -18, 180 -12, 175 -12, 175 -18)), "
      "((-180 -18, -175 -18, -175 -12, -180 -12, -180 -18)))";
  EXPECT_TRUE(related(Relation::contains, fiji, cut));
  EXPECT_TRUE(related(Relation::contains, cut, "POINT(180 -15)"));
  EXPECT_TRUE(related(Relation::within, "POLYGON((178 -16, -178 -16, -178 -14, 178 -14, 178 -16))", cut));
  EXPECT_TRUE(related(Relation::equals, "POLYGON((175 -18, -175 -18, -175 -12, 175 -12, 175 -18))", cut));
}

// The reference is arithmetic.
TEST(GeometryTest, PointsInRectanglesAreThoseBetweenTheBounds) {
  std::mt19937 random(3);
  const auto any = [&](double least, double most) {
    return std::round(std::uniform_real_distribution<>(least, most)(random));
  };
  for (int i = 0; i < 2'000; ++i) {
    Box box{any(-180, 180), any(-90, 80), any(-180, 180), 0};
    box.north = any(box.south + 1, 90);
    if (std::abs(box.west - box.east) < 1) continue;
    const Position point{any(-180, 180), any(-90, 90)};
    const double east = box.east < box.west ? box.east + 360 : box.east;
    const auto is_in = [&](double margin) {
      for (const double turn : {-360.0, 0.0, 360.0}) {
        const double longitude = point.longitude + turn;
        if (longitude >= box.west + margin && longitude <= east - margin &&
            point.latitude >= box.south + margin && point.latitude <= box.north - margin)
          return true;
      }
      return false;
    };
    const auto geometry = Geometry::from_geojson(
        fmt::format(R"({{"type":"Point","coordinates":[{},{}]}})", point.longitude, point.latitude));
    const auto rectangle = Geometry::rectangle(box);
    EXPECT_EQ(Matcher(rectangle, Relation::covers).matches(geometry), is_in(0))
        << box.west << " " << point.longitude;
    if (east - box.west < 360) {
      EXPECT_EQ(Matcher(rectangle, Relation::contains).matches(geometry), is_in(0.5)) << box.west;
    }
  }
}

TEST(GeometryTest, CirclesThatHaveAPoleContainTheirPoints) {
  for (const double longitude : {0.0, 45.0, 90.0, 180.0, -90.0}) {
    Matcher contains(Geometry::ellipse({longitude, 90}, 3e6, 3e6), Relation::contains);
    for (int i = -180; i <= 180; i += 15) {
      EXPECT_TRUE(contains.matches(Geometry::from_wkt(fmt::format("POINT({} 80)", i))))
          << longitude << " " << i;
      EXPECT_TRUE(contains.matches(Geometry::from_wkt(fmt::format("POINT({} 90)", i))))
          << longitude << " " << i;
      EXPECT_FALSE(contains.matches(Geometry::from_wkt(fmt::format("POINT({} 60)", i))))
          << longitude << " " << i;
    }
  }
  const auto earth = Geometry::rectangle({-180, -90, 180, 90});
  EXPECT_FALSE(Matcher(earth, Relation::touches).matches(Geometry::from_wkt("POINT(180 5)")));
}

// Its validity takes GEOS a minute.
TEST(GeometryTest, GeometriesThatTakeTooLongAreRefused) {
  std::string comb = "POLYGON((";
  constexpr int kTeeth = 12'000;
  for (int i = 0; i < kTeeth; ++i) {
    const double step = 1.0 / (2 * kTeeth);
    comb += fmt::format("{:.7f} 0, {:.7f} 50, {:.7f} 0, ", 2 * i * step, 50 + (2 * i + 0.5) * step,
                        (2 * i + 1) * step);
  }
  const auto geometry = Geometry::from_wkt(comb + "1 -1, 0 -1, 0 0))");
  try {
    geometry.check_valid();
    ADD_FAILURE() << "it was valid";
  } catch (const Error& error) { EXPECT_EQ(error.status(), 413) << error.reason(); }
  // The next one has its own time.
  Geometry::from_wkt("POLYGON((0 0, 1 0, 1 1, 0 0))").check_valid();
}

TEST(GeometryTest, RingsAroundAPoleEncloseIt) {
  const std::string arctic = "POLYGON((0 80, 90 80, 180 80, -90 80, 0 80))";
  for (const char* inside : {"POINT(45 89)", "POINT(-135 81)", "POINT(0 90)"})
    EXPECT_TRUE(related(Relation::covers, arctic, inside)) << inside;
  EXPECT_FALSE(related(Relation::intersects, arctic, "POINT(45 79)"));
  const std::string antarctic = "POLYGON((0 -70, -90 -70, 180 -70, 90 -70, 0 -70))";
  EXPECT_TRUE(related(Relation::contains, antarctic, "POINT(-30 -80)"));
  EXPECT_FALSE(related(Relation::intersects, antarctic, "POINT(-30 80)"));
  EXPECT_TRUE(
      related(Relation::contains, "POLYGON((-180 -90, 180 -90, 180 90, -180 90, -180 -90))", "POINT(45 70)"));
}

TEST(GeometryTest, RelationsAreThoseOfTheStandard) {
  const std::string square = "POLYGON((0 0, 10 0, 10 10, 0 10, 0 0))";
  const std::string edge = "POINT(10 5)";
  EXPECT_FALSE(related(Relation::contains, square, edge));
  EXPECT_TRUE(related(Relation::covers, square, edge));
  EXPECT_TRUE(related(Relation::touches, square, edge));
  EXPECT_TRUE(related(Relation::covered_by, edge, square));
  EXPECT_TRUE(related(Relation::overlaps, square, "POLYGON((5 5, 15 5, 15 15, 5 15, 5 5))"));
  EXPECT_FALSE(related(Relation::overlaps, square, "POLYGON((5 5, 6 5, 6 6, 5 6, 5 5))"));
  EXPECT_TRUE(related(Relation::disjoint, square, "POINT(11 5)"));
  EXPECT_FALSE(related(Relation::disjoint, square, edge));
  const std::string collection = "GEOMETRYCOLLECTION(POINT(5 5), LINESTRING(1 1, 2 2))";
  EXPECT_TRUE(related(Relation::contains, square, collection));
  EXPECT_TRUE(related(Relation::within, collection, square));
  EXPECT_FALSE(related(Relation::contains, square, "GEOMETRYCOLLECTION(POINT(5 5), LINESTRING(1 1, 20 2))"));
  EXPECT_TRUE(
      related(Relation::intersects, square, "GEOMETRYCOLLECTION(POINT(50 5), LINESTRING(1 1, 20 2))"));
}

// A coastline around a pole goes back and forth where it begins.
TEST(GeometryTest, RingsAroundAPoleMayGoBack) {
  const auto coast = Geometry::from_geojson(
      R"({"type":"Polygon","coordinates":[[[10,-70],[9.9,-71],[20,-70],[100,-66],[-170,-75],[-80,-72],[0,-70],[10,-70]]]})");
  EXPECT_NO_THROW(coast.check_valid());
  for (const auto& part : coast.parts()) {
    EXPECT_GE(part.box().west, -180);
    EXPECT_LE(part.box().east, 180);
  }
  const auto has = [&](double longitude, double latitude) {
    return distance(Position{longitude, latitude}, coast) == 0;
  };
  EXPECT_TRUE(has(0, -90));
  EXPECT_TRUE(has(50, -80));
  EXPECT_TRUE(has(-179, -80));
  EXPECT_TRUE(has(180, -80));
  EXPECT_TRUE(has(9.95, -72));
  EXPECT_FALSE(has(9.95, -70.7));  // in the notch
  EXPECT_FALSE(has(0, 0));
  EXPECT_FALSE(has(0, 90));
  EXPECT_THROW(
      Geometry::from_geojson(
          R"({"type":"Polygon","coordinates":[[[0,80],[120,80],[-120,80],[0,70],[120,70],[-120,70],[0,80]]]})"),
      Error);
}

TEST(GeometryTest, ABandAroundAPoleHasAHole) {
  const auto band = Geometry::from_geojson(
      R"({"type":"Polygon","coordinates":[[[0,60],[90,60],[179,60],[-90,60],[0,60]],[[0,80],[120,80],[-120,80],[0,80]],[[170,65],[-170,65],[-170,70],[170,70],[170,65]]]})");
  EXPECT_NO_THROW(band.check_valid());
  const auto has = [&](double longitude, double latitude) {
    return distance(Position{longitude, latitude}, band) == 0;
  };
  EXPECT_TRUE(has(10, 75));
  EXPECT_TRUE(has(180, 75));
  EXPECT_TRUE(has(-180, 62));
  EXPECT_FALSE(has(10, 85));
  EXPECT_FALSE(has(0, 90));
  EXPECT_FALSE(has(180, 67));
  EXPECT_FALSE(has(-175, 67));
  EXPECT_FALSE(has(10, 59));
}

// Lines that end at the antimeridian are not cut there.
TEST(GeometryTest, LinesThatEndAtTheAntimeridianKeepTheirRelations) {
  EXPECT_TRUE(related(Relation::intersects, "LINESTRING(-180 1, -174 -1, -174 -6, -179 2)",
                      "MULTIPOINT((-177 0), (-176 2), (-180 -3))"));
  EXPECT_TRUE(related(Relation::intersects,
                      "MULTILINESTRING((-180 1, -174 -1, -174 -6, -179 2), (180 1, 170 0))",
                      "POINT(-177 0)"));
}

TEST(GeometryTest, EllipsesHaveTheirRanges) {
  const auto circle = Geometry::ellipse({25, 60}, 1000, 1000);
  for (const auto& vertex : circle.parts().front().rings.front())
    EXPECT_NEAR(distance(Position{25, 60}, vertex), 1000, 0.001);
  const auto polar = Geometry::ellipse({25, 89.9}, 100'000, 100'000);
  EXPECT_TRUE(Matcher(polar, Relation::contains).matches(Geometry::from_wkt("POINT(-155 89.5)")));
  EXPECT_FALSE(Matcher(polar, Relation::contains).matches(Geometry::from_wkt("POINT(-155 89)")));
  EXPECT_THROW(Geometry::ellipse({0, 0}, -1, 1), Error);
  EXPECT_THROW(Geometry::ellipse({0, 0}, 1e9, 1), Error);
}

}  // namespace
}  // namespace divan::index::geo
