#include "divan/selector/path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "divan/selector/condition.h"

namespace divan::selector {
namespace {

using ::testing::ElementsAre;

TEST(Path, IsReadBack) {
  EXPECT_THAT(parse_path("a"), ElementsAre("a"));
  EXPECT_THAT(parse_path("a.b.0"), ElementsAre("a", "b", "0"));
  EXPECT_THAT(parse_path("a\\.b.c"), ElementsAre("a.b", "c"));
  for (const auto* field : {"a", "a.b", "a\\.b.c", "\\.x"}) EXPECT_EQ(to_field(parse_path(field)), field);
}

TEST(Path, FindsFields) {
  const auto* document = R"({"a":{"b":[1,{"c":2}]},"d.e":3,"\u0066":4,"a.b":5})";
  EXPECT_EQ(find_field({"a", "b", "1", "c"}, document), "2");
  EXPECT_EQ(find_field({"d.e"}, document), "3");
  EXPECT_EQ(find_field({"f"}, document), "4");
  EXPECT_EQ(find_field({"a", "b", "2"}, document), std::nullopt);
  EXPECT_EQ(find_field({"a", "b", "x"}, document), std::nullopt);
  EXPECT_EQ(find_field({"f", "x"}, document), std::nullopt);
  EXPECT_EQ(find_field({"x"}, document), std::nullopt);
}

std::string normal(std::string_view selector) {
  std::string out;
  append_selector(out, parse_condition(selector));
  return out;
}

// The normal form selects the same documents, and is its own normal form.
TEST(Condition, IsShownInItsNormalForm) {
  for (const auto& [selector, expected] : std::vector<std::pair<std::string, std::string>>{
           {"{}", "{}"},
           {R"({"a":1})", R"({"a":{"$eq":1}})"},
           {R"({"a":{"b":{"$gt":1}}})", R"({"a.b":{"$gt":1}})"},
           {R"({"a\\.b":1})", R"({"a\\.b":{"$eq":1}})"},
           {R"({"a":{"$gt":1,"$lt":3}})", R"({"$and":[{"a":{"$gt":1}},{"a":{"$lt":3}}]})"},
           {R"({"$not":{"$or":[{"a":1},{"b":{"$in":[1]}}]}})",
            R"({"$and":[{"a":{"$ne":1}},{"b":{"$nin":[1]}}]})"},
           {R"({"a":{"$not":{"$regex":"x"}}})", R"({"a":{"$not":{"$regex":"x"}}})"},
           {R"({"a":{"$not":{"$exists":true}}})", R"({"a":{"$exists":false}})"},
           {R"({"a":{"$mod":[4,1]},"b":{"$size":2}})",
            R"({"$and":[{"a":{"$mod":[4,1]}},{"b":{"$size":2}}]})"},
           {R"({"a":{"$elemMatch":{"b":1}}})", R"({"a":{"$elemMatch":{"b":{"$eq":1}}}})"},
           {R"({"a":{"$elemMatch":{"$gt":1}}})", R"({"a":{"$elemMatch":{"$gt":1}}})"},
           {R"({"a":{"$allMatch":{"$not":{"b":1}}}})", R"({"a":{"$allMatch":{"$not":{"b":{"$eq":1}}}}})"}}) {
    EXPECT_EQ(normal(selector), expected);
    EXPECT_EQ(normal(expected), expected);
  }
  // As CouchDB stores it.
  EXPECT_EQ(normal(R"({"a":{"$elemMatch":{"":{"$gt":1}}}})"), R"({"a":{"$elemMatch":{"$gt":1}}})");
}

}  // namespace
}  // namespace divan::selector
