// Spatial indexes with real documents, functions and builds. Results must be those of a scan of all
// documents.
#include "divan/index/geo/query.h"

#include <cmath>
#include <random>

#include "divan/index/geo/distance.h"
#include "divan/index/geo/geo_kind.h"
#include "divan/index/views/views_testing.h"

namespace divan::index::geo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kDesign =
    R"({"_id":"_design/d","st_indexes":{"places":{"index":"function(doc) { [].concat(doc.at || []).forEach(st_index) }"}}})";

struct GeoQueryTest : views::testing::IndexFixture {
  void SetUp() override {
    set_up(std::make_unique<GeoKind>(pool), 100);
    put(kDesign);
  }

  std::shared_ptr<const GeoIndex> index() { return std::dynamic_pointer_cast<const GeoIndex>(first_index()); }

  std::string query(const GeoParamTexts& texts) {
    GeoQuery query(*store, catalog, "db", index(), "places", parse_params(texts));
    std::string out;
    while (query.next(out)) {}
    return json::compact(out);
  }

  static std::vector<std::string> ids_of(const std::string& response) {
    std::vector<std::string> ids;
    json::for_each_element(*json::member(response, "rows"), [&](std::string_view row) {
      ids.push_back(*json::string_value(*json::member(row, "id")));
      return true;
    });
    return ids;
  }

  // The ids on all pages.
  std::vector<std::string> all(GeoParamTexts texts, const char* limit) {
    std::vector<std::string> ids;
    texts.emplace_back("limit", limit);
    for (std::string bookmark;;) {
      auto page = texts;
      if (!bookmark.empty()) page.emplace_back("bookmark", bookmark);
      const auto response = query(page);
      const auto found = ids_of(response);
      if (found.empty()) return ids;
      ids.insert(ids.end(), found.begin(), found.end());
      bookmark = *json::string_value(*json::member(response, "bookmark"));
    }
  }

  std::vector<std::string> sorted(const GeoParamTexts& texts, const char* limit = "7") {
    auto ids = all(texts, limit);
    std::ranges::sort(ids);
    return ids;
  }
};

std::string point_at(double longitude, double latitude) {
  return fmt::format(R"({{"type":"Point","coordinates":[{:.6f},{:.6f}]}})", longitude, latitude);
}

// Small and large points, lines and polygons all over the Earth; some cross the antimeridian or have a pole.
std::string random_geometry(std::mt19937& random) {
  std::uniform_real_distribution<> any(0, 1);
  const double longitude = any(random) * 360 - 180, latitude = std::asin(any(random) * 2 - 1) * 57.29;
  const auto kind = random() % 4;
  if (kind < 2) return point_at(longitude, latitude);
  const double size = std::pow(10, any(random) * 3 - 1);
  const auto wrapped = [](double degrees) { return std::remainder(degrees, 360); };
  const double north = std::min(89.0, latitude + size), south = std::max(-89.0, latitude - size);
  if (kind == 2)
    return fmt::format(R"({{"type":"LineString","coordinates":[[{:.6f},{:.6f}],[{:.6f},{:.6f}]]}})",
                       longitude, south, wrapped(longitude + size), north);
  return fmt::format(
      R"({{"type":"Polygon","coordinates":[[[{0:.6f},{1:.6f}],[{2:.6f},{1:.6f}],[{3:.6f},{4:.6f}],[{0:.6f},{1:.6f}]]]}})",
      longitude, south, wrapped(longitude + size), wrapped(longitude + size / 2), north);
}

TEST_F(GeoQueryTest, FindsWhatAComparisonWithEveryDocumentFinds) {
  std::mt19937 random(7);
  std::vector<std::string> texts, documents;
  for (int i = 0; i < 600; ++i) {
    texts.push_back(random_geometry(random));
    documents.push_back(fmt::format(R"({{"_id":"{:03}","at":{}}})", i, texts.back()));
  }
  put_all(documents);
  build();
  const auto compared = [&](const auto& matches) {
    std::vector<std::string> ids;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (matches(Geometry::from_geojson(texts[i]))) ids.push_back(fmt::format("{:03}", i));
    }
    return ids;
  };
  std::size_t found = 0;
  for (int i = 0; i < 60; ++i) {
    const std::string text = random_geometry(random);
    const auto geometry = Geometry::from_geojson(text);
    for (const char* name : {"intersects", "contains", "within", "overlaps", "crosses", "disjoint"}) {
      Matcher matcher(geometry, *find_relation(name));
      const auto expected = compared([&](const Geometry& one) { return matcher.matches(one); });
      EXPECT_EQ(sorted({{"g", text}, {"relation", name}}), expected) << name << " " << text;
      if (std::string_view(name) != "disjoint") found += expected.size();
    }
    const double longitude = std::uniform_real_distribution<>(-180, 180)(random);
    const double latitude = std::uniform_real_distribution<>(-90, 90)(random);
    const double radius = std::pow(10, std::uniform_real_distribution<>(4, 7.2)(random));
    const Position centre{longitude, latitude};
    const GeoParamTexts circle{{"lon", fmt::format("{}", longitude)},
                               {"lat", fmt::format("{}", latitude)},
                               {"radius", fmt::format("{}", radius)}};
    const auto inside = compared([&](const Geometry& one) { return distance(centre, one) <= radius; });
    EXPECT_EQ(sorted(circle), inside) << longitude << " " << latitude << " " << radius;
    found += inside.size();
    std::vector<std::pair<double, std::string>> by_distance;
    for (std::size_t n = 0; n < texts.size(); ++n)
      by_distance.emplace_back(distance(centre, Geometry::from_geojson(texts[n])), fmt::format("{:03}", n));
    std::ranges::sort(by_distance);
    std::vector<std::string> nearest;
    for (std::size_t n = 3; n < 13; ++n) nearest.push_back(by_distance[n].second);
    EXPECT_EQ(ids_of(query({circle[0], circle[1], {"nearest", "true"}, {"skip", "3"}, {"limit", "10"}})),
              nearest);
  }
  EXPECT_GT(found, 1'000u);
}

TEST_F(GeoQueryTest, FollowsChanges) {
  const auto revisions = put_all(
      {R"({"_id":"a","at":)" + point_at(10, 50) + "}", R"({"_id":"b","at":)" + point_at(11, 51) + "}"});
  build();
  const GeoParamTexts box{{"bbox", "9,49,12,52"}};
  EXPECT_THAT(sorted(box), ElementsAre("a", "b"));
  const auto count = [&] {
    return store->run([&](kv::Transaction& tx) {
      return index()->count_documents(tx, IndexKeys(catalog.open(tx, "db"), index()->signature()),
                                      *index()->find("places"));
    });
  };
  EXPECT_EQ(count(), 2);
  put_all({fmt::format(R"({{"_id":"a","_rev":"{}","at":{}}})", revisions[0], point_at(100, 5)),
           fmt::format(R"({{"_id":"b","_rev":"{}","_deleted":true}})", revisions[1])});
  build();
  EXPECT_THAT(sorted(box), IsEmpty());
  EXPECT_THAT(sorted({{"bbox", "99,4,101,6"}}), ElementsAre("a"));
  EXPECT_EQ(count(), 1);
}

TEST_F(GeoQueryTest, InvalidGeometriesAreLeftOutAndRecorded) {
  put_all({R"({"_id":"a","at":[{"type":"Point","coordinates":[500,0]},)" + point_at(1, 1) + "]}"});
  build();
  EXPECT_THAT(sorted({{"bbox", "0,0,2,2"}}), ElementsAre("a"));
  store->run([&](kv::Transaction& tx) {
    std::string out;
    json::Writer writer(out);
    read_left_out(tx, IndexKeys(catalog.open(tx, "db"), index()->signature())).write(writer);
    EXPECT_THAT(out, ::testing::HasSubstr("Spatial index `places`: Invalid geometry: the longitude 500"));
  });
}

std::string square(double west, double south, double size) {
  return fmt::format(
      R"({{"type":"Polygon","coordinates":[[[{0},{1}],[{2},{1}],[{2},{3}],[{0},{3}],[{0},{1}]]]}})", west,
      south, west + size, south + size);
}

TEST_F(GeoQueryTest, TheNearestToPartsOnBothSidesOfTheAntimeridianAreThere) {
  put_all({R"({"_id":"fiji","at":)" + point_at(179, -17) + "}",
           R"({"_id":"ghana","at":)" + point_at(0, 5) + "}"});
  build();
  const auto found =
      ids_of(query({{"g", "MULTIPOINT(175 -18, -175 -18)"}, {"nearest", "true"}, {"relation", "disjoint"}}));
  EXPECT_THAT(found, ElementsAre("fiji", "ghana"));
}

TEST_F(GeoQueryTest, EachGeometryOfADocumentIsFoundOnce) {
  put_all({R"({"_id":"points","at":[)" + point_at(1, 0) + "," + point_at(-1, 0) + "," + point_at(1, 0) + "]}",
           R"({"_id":"squares","at":[)" + square(-2, -2, 4) + "," + square(-3, -3, 6) + "," +
               square(-3, -3, 6) + "]}"});
  build();
  const std::vector<std::string> expected{"points", "points", "points", "squares", "squares", "squares"};
  for (const char* limit : {"1", "2", "7"}) {
    for (const GeoParamTexts& texts : {GeoParamTexts{{"bbox", "-5,-5,5,5"}},
                                       GeoParamTexts{{"lat", "0"}, {"lon", "0"}, {"nearest", "true"}},
                                       GeoParamTexts{{"bbox", "-5,-5,5,5"}, {"nearest", "true"}}}) {
      EXPECT_EQ(sorted(texts, limit), expected) << limit << texts.front().second;
    }
  }
}

// More than are read of a cell at once, in the smallest one.
TEST_F(GeoQueryTest, ManyPointsAtOnePlaceAreFound) {
  std::vector<std::string> documents, expected;
  for (int i = 0; i < 300; ++i) {
    expected.push_back(fmt::format("{:03}", i));
    documents.push_back(fmt::format(R"({{"_id":"{}","at":{}}})", expected.back(), point_at(10, 50)));
  }
  documents.push_back(R"({"_id":"far","at":)" + point_at(-10, -50) + "}");
  put_all(documents);
  build();
  EXPECT_EQ(sorted({{"bbox", "9,49,11,51"}}, "70"), expected);
  auto nearest = all({{"lat", "50"}, {"lon", "10"}, {"nearest", "true"}}, "70");
  EXPECT_EQ(nearest.back(), "far");
  nearest.pop_back();
  EXPECT_EQ(nearest, expected);
  EXPECT_EQ(all({{"lat", "-50"}, {"lon", "-10"}, {"nearest", "true"}}, "70").front(), "far");
}

// A geometry that is not held until the response is written, in each of the views.
TEST_F(GeoQueryTest, LargeGeometriesAreShownAsTheyAre) {
  std::string further, same;
  for (int i = 0; i < 500; ++i) {
    further += ",0.5";
    same += ",[5,2]";
  }
  const std::string point = R"({"type":"Point","coordinates":[1,2)" + further + "]}";
  const std::string line = R"({"type":"LineString","coordinates":[[5,2],[5.0000000001,2])" + same + "]}";
  const std::string long_line = R"({"type":"LineString","coordinates":[[30,2])" + same + "]}";
  put_all({R"({"_id":"a","at":)" + point + "}", R"({"_id":"b","at":)" + line + "}",
           R"({"_id":"c","at":)" + long_line + "}"});
  build();
  for (const GeoParamTexts& texts : {GeoParamTexts{{"bbox", "0,0,40,5"}},
                                     GeoParamTexts{{"lat", "2"}, {"lon", "1"}, {"nearest", "true"}}}) {
    const auto response = query(texts);
    for (const auto& geometry : {point, line, long_line})
      EXPECT_THAT(response, ::testing::HasSubstr("\"geometry\":" + geometry));
  }
}

TEST_F(GeoQueryTest, ARevisionIsThatWhichWasIndexed) {
  const auto first = put(R"({"_id":"a","at":)" + point_at(1, 2) + "}");
  build();
  put(R"({"_id":"a","_rev":")" + first + R"(","at":)" + point_at(3, 4) + "}");
  const auto response = query({{"bbox", "0,0,5,5"}});
  EXPECT_THAT(response, ::testing::HasSubstr("\"rev\":\"" + first + "\""));
  EXPECT_THAT(response, ::testing::HasSubstr(R"("coordinates":[1,2])"));
}

// A geometry that is read again for the response, after the document has changed.
TEST_F(GeoQueryTest, AGeometryIsThatOfItsRevision) {
  const auto ring = [](int places) {
    std::string positions;
    for (int i = 0; i <= 100; ++i)
      positions += fmt::format("{}[{:.{}f},{:.{}f}]", i == 0 ? "" : ",", 10 + std::cos(i % 100 * 0.0628318),
                               places, 10 + std::sin(i % 100 * 0.0628318), places);
    return "[" + positions + "]";
  };
  const auto polygon = [&](const char* more) {
    return R"({"type":"MultiPolygon","coordinates":[[)" + ring(12) + "]" + more + "]}";
  };
  std::vector<std::string> documents;
  for (int i = 0; i < 200; ++i)
    documents.push_back(fmt::format(R"({{"_id":"{:03}","at":{}}})", i, polygon("")));
  const auto revisions = put_all(documents);
  build();
  GeoQuery query(*store, catalog, "db", index(), "places",
                 parse_params({{"bbox", "9,9,11,11"}, {"limit", "200"}}));
  std::string out;
  while (out.empty()) ASSERT_TRUE(query.next(out));
  documents.clear();
  for (int i = 0; i < 200; ++i)
    documents.push_back(fmt::format(R"({{"_id":"{:03}","_rev":"{}","at":{}}})", i, revisions[i],
                                    polygon(",[[[50,50],[51,50],[51,51],[50,50]]]")));
  put_all(documents);
  build();
  while (query.next(out)) {}
  std::size_t rows = 0;
  const std::string response = json::compact(out);
  json::for_each_element(*json::member(response, "rows"), [&](std::string_view row) {
    ++rows;
    const auto number = std::stoul(*json::string_value(*json::member(row, "id")));
    EXPECT_EQ(json::string_value(*json::member(row, "rev")), revisions[number]);
    const auto geometry = *json::member(row, "geometry");
    EXPECT_TRUE(geometry.starts_with('{'));
    EXPECT_EQ(geometry.find("[50,50]"), std::string_view::npos);  // of the new revision
    return true;
  });
  EXPECT_GT(rows, 0u);
  EXPECT_LT(rows, 200u);
}

// It would not be one that can be parsed.
TEST_F(GeoQueryTest, MembersThatAGeometryHasNotAreNotStored) {
  put_all({R"({"_id":"a","at":{"type":"Point","coordinates":[1,2],"geometries":[]}})",
           R"({"_id":"b","at":{"type":"GeometryCollection","geometries":[)" + point_at(3, 4) +
               R"(],"coordinates":[5,6]}})"});
  build();
  const auto response = query({{"bbox", "0,0,5,5"}});
  EXPECT_THAT(ids_of(response), ElementsAre("a", "b"));
  EXPECT_THAT(response, ::testing::HasSubstr(R"({"type":"Point","coordinates":[1,2]})"));
}

TEST_F(GeoQueryTest, ABookmarkOfNoResultsIsTheBeginning) {
  const auto bookmark_of = [&](const GeoParamTexts& texts) {
    const std::string response = query(texts);
    return *json::string_value(*json::member(response, "bookmark"));
  };
  build();
  for (const GeoParamTexts& texts : {GeoParamTexts{{"bbox", "-5,-5,5,5"}},
                                     GeoParamTexts{{"lat", "0"}, {"lon", "0"}, {"nearest", "true"}}}) {
    auto none = texts;
    none.emplace_back("limit", "0");
    for (const auto& bookmark : {bookmark_of(texts), bookmark_of(none)}) {
      auto page = texts;
      page.emplace_back("bookmark", bookmark);
      EXPECT_THAT(ids_of(query(page)), IsEmpty());
    }
  }
  const auto bookmark = bookmark_of({{"bbox", "-5,-5,5,5"}});
  put_all({R"({"_id":"a","at":)" + point_at(1, 1) + "}"});
  build();
  EXPECT_THAT(ids_of(query({{"bbox", "-5,-5,5,5"}, {"bookmark", bookmark}})), ElementsAre("a"));
}

TEST_F(GeoQueryTest, LinesThatGoAroundTheEarthAreFoundEverywhere) {
  std::string positions;
  for (int i = 0; i < 50; ++i)
    positions += fmt::format("{}[{},{}]", i > 0 ? "," : "", std::remainder(i * 30 - 170, 360), i);
  put_all({R"({"_id":"a","at":{"type":"LineString","coordinates":[)" + positions + "]}}"});
  build();
  for (int i = 0; i < 49; ++i) {
    const double longitude = std::remainder(i * 30 - 155, 360), latitude = i + 0.5;
    EXPECT_THAT(ids_of(query({{"bbox", fmt::format("{},{},{},{}", longitude - 0.5, latitude - 0.5,
                                                   longitude + 0.5, latitude + 0.5)}})),
                ElementsAre("a"))
        << i;
  }
}

TEST_F(GeoQueryTest, AGeometryThatIsTooLargeForARowIsLeftOutWhole) {
  std::string positions;
  for (int i = 0; i < 180'000; ++i)
    positions +=
        fmt::format("{}[{:.13f},{:.14f}]", i > 0 ? "," : "", 10 + i * 1.23456789e-4, 2 + std::sin(i));
  put_all({R"({"_id":"a","at":{"type":"LineString","coordinates":[)" + positions + "]}}",
           R"({"_id":"b","at":{"junk":")" + std::string(6'500'000, 'x') +
               R"(","type":"LineString","coordinates":[[0,0],[9,9]]}})"});
  build();
  const auto response = query({{"bbox", "0,0,20,9"}});
  EXPECT_THAT(ids_of(response), ElementsAre("b"));
  EXPECT_LT(response.size(), 1'000u);  // without the other members
}

TEST_F(GeoQueryTest, LargePolygonsAreStoredOnce) {
  std::string ring;
  for (int i = 0; i < 20'000; ++i) {
    const double angle = i * 6.283185307 / 20'000;
    ring += fmt::format("[{:.9f},{:.9f}],", 20 + 10 * std::cos(angle), 40 + 10 * std::sin(angle));
  }
  ring += "[30.000000000,40.000000000]";
  put_all({R"({"_id":"a","at":{"type":"Polygon","coordinates":[[)" + ring + "]]}}"});
  build();
  EXPECT_THAT(sorted({{"bbox", "19,39,21,41"}}), ElementsAre("a"));
  EXPECT_THAT(sorted({{"bbox", "31,39,32,41"}}), IsEmpty());
  const auto bytes = store->run([&](kv::Transaction& tx) {
    std::size_t sum = 0;
    tx.scan(IndexKeys(catalog.open(tx, "db"), index()->signature()).all(), {},
            [&](std::string_view, std::string_view value) {
              sum += value.size();
              return true;
            });
    return sum;
  });
  EXPECT_LT(bytes, ring.size() + 10'000);
}

TEST_F(GeoQueryTest, RefusesWhatIsNoSearch) {
  const std::vector<GeoParamTexts> cases = {
      {},
      {{"bbox", "1,2,3"}},
      {{"bbox", "1,2,3,nan"}},
      {{"bbox", "0,5,1,4"}},
      {{"bbox", "0,0,1,1"}, {"g", "POINT(0 0)"}},
      {{"g", "POLYGON((0 0"}},
      {{"g", "POLYGON((0 0, 2 2, 2 0, 0 2, 0 0))"}},
      {{"lat", "1"}},
      {{"radius", "5"}},
      {{"lat", "1"}, {"lon", "1"}, {"radius", "-5"}},
      {{"lat", "91"}, {"lon", "1"}, {"radius", "5"}},
      {{"lat", "1"}, {"lon", "1"}, {"rangex", "5"}},
      {{"bbox", "0,0,1,1"}, {"limit", "201"}},
      {{"bbox", "0,0,1,1"}, {"relation", "near"}},
      {{"bbox", "0,0,1,1"}, {"bookmark", "x"}},
      {{"bbox", "0,0,1,1"}, {"nearest", "true"}, {"skip", "100000"}},
      {{"nearest", "true"}},
  };
  for (const auto& texts : cases) {
    try {
      parse_params(texts);
      ADD_FAILURE() << "case " << (&texts - cases.data());
    } catch (const Error& error) { EXPECT_EQ(error.status(), 400); }
  }
}

// A bookmark is the client's: whatever it has, a query reads only rows of its own index.
TEST_F(GeoQueryTest, ForgedBookmarksReadNothingElse) {
  put_all({R"({"_id":"a","at":)" + point_at(10, 50) + "}"});
  build();
  for (const std::string& position :
       {std::string(), std::string("\x01"), std::string("\xff\xff\xff"), std::string(3, '\0')}) {
    const auto ids =
        ids_of(query({{"bbox", "9,49,12,52"}, {"bookmark", Bookmark{.position = position}.encode()}}));
    EXPECT_LE(ids.size(), 1u);
  }
}

}  // namespace
}  // namespace divan::index::geo
