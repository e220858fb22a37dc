#include "divan/mango/text_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "divan/base/error_testing.h"
#include "divan/mango/find_request.h"
#include "divan/mango/testing.h"

namespace divan::mango {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kSome =
    R"({"fields":[{"name":"a","type":"string"},{"name":"n","type":"number"},{"name":"t.[]","type":"string"}]})";

struct TextQueryTest : ::testing::Test {
  // Without the boosts of 0, which all but `$text` have.
  std::string query(std::string_view selector, std::string_view definition = "{}") {
    const auto parsed = selector::Selector::parse(json::compact(selector), selector::TextOperator::allowed);
    const auto index = definitions.text("_design/d", definition);
    const auto found = text_query(parsed.condition(), *index.text->text_map(), index.text->analyzer());
    if (!found) return "unusable";
    std::string text = to_lucene(found->query);
    for (std::size_t at = 0; (at = text.find("^0", at)) != std::string::npos;) text.erase(at, 2);
    return text;
  }
  testing::Definitions definitions;
};

TEST_F(TextQueryTest, FindsValues) {
  EXPECT_EQ(query(R"({"a":"x"})"), R"(a_3astring:"x")");
  EXPECT_EQ(query(R"({"a.b":5})"), R"(a.b_3anumber:"5")");
  EXPECT_EQ(query(R"({"a":true})"), R"(a_3aboolean:"true")");
  EXPECT_EQ(query(R"({"a":null})"), R"($fieldnames:"a_3anull")");
  EXPECT_EQ(query(R"({"a":[1]})"), R"($fieldnames:"a_3aarray")");
  EXPECT_EQ(query(R"({"a":{"$beginsWith":"x y"}})"), R"(a_3astring:x\ y*)");
  EXPECT_EQ(query(R"({"a":{"$size":2}})"), R"(a._5b_5d_3alength:"2")");
  EXPECT_EQ(query(R"({"a":{"$exists":true}})"), "$fieldnames:a_3a*");
  EXPECT_EQ(query(R"({"a":{"$type":"object"}})"), R"($fieldnames:"a_3aobject")");
  EXPECT_EQ(query(R"({"a":{"$regex":"x"}})"), R"($fieldnames:"a_3astring")");
  EXPECT_EQ(query(R"({"a":{"$mod":[2,1]}})"), R"($fieldnames:"a_3anumber")");
  EXPECT_EQ(query(R"({"$text":"Some words"})"), R"($default:"some words")");
  EXPECT_EQ(query(R"({"$text":"Some words"})", R"({"default_field":{"analyzer":"whitespace"}})"),
            R"($default:"Some words")");
}

TEST_F(TextQueryTest, OrderIsThatOfAllTypes) {
  EXPECT_EQ(query(R"({"a":{"$lt":5}})"),
            R"(($fieldnames:"a_3anull" $fieldnames:"a_3aboolean" a_3anumber:[* TO 5]))");
  EXPECT_EQ(
      query(R"({"a":{"$gte":5}})"),
      R"((a_3anumber:[5 TO *] $fieldnames:"a_3astring" $fieldnames:"a_3aarray" $fieldnames:"a_3aobject"))");
  // By collation, which is not the order of terms.
  EXPECT_EQ(query(R"({"a":{"$gt":"x"}})"),
            R"(($fieldnames:"a_3astring" $fieldnames:"a_3aarray" $fieldnames:"a_3aobject"))");
}

TEST_F(TextQueryTest, NegationsNeedTheField) {
  for (const auto* selector : {R"({"a":{"$ne":1}})", R"({"a":{"$nin":[1]}})", R"({"a":{"$not":{"$size":1}}})",
                               R"({"$not":{"a":{"$in":["x"]}}})"})
    EXPECT_EQ(query(selector), "$fieldnames:a_3a*") << selector;
}

TEST_F(TextQueryTest, ListsAreOfValuesOrElements) {
  EXPECT_EQ(
      query(R"({"a":{"$in":["x",3,7]}})"),
      R"(((a_3astring:"x" a_3anumber:"3" a_3anumber:"7") (a._5b_5d_3astring:"x" a._5b_5d_3anumber:"3" a._5b_5d_3anumber:"7")))");
  EXPECT_EQ(query(R"({"a":{"$all":["x",1]}})"),
            R"((+$fieldnames:"a_3aarray" +a._5b_5d_3astring:"x" +a._5b_5d_3anumber:"1"))");
  EXPECT_EQ(query(R"({"a":{"$all":[["x"]]}})"), R"($fieldnames:"a_3aarray")");
  EXPECT_EQ(query(R"({"a":{"$elemMatch":{"b":1}}})"),
            R"((+$fieldnames:"a_3aarray" +a._5b_5d.b_3anumber:"1"))");
  EXPECT_EQ(query(R"({"a":{"$elemMatch":{"$not":{"b":1}}}})"), R"($fieldnames:"a_3aarray")");
  EXPECT_EQ(query(R"({"a":{"$keyMapMatch":{"$eq":"x"}}})"), R"($fieldnames:"a_3aobject")");
  // A number may be the name of a member.
  EXPECT_EQ(query(R"({"a.0":1})"), R"((a.0_3anumber:"1" a._5b_5d_3anumber:"1"))");
  EXPECT_EQ(query(R"({"a.0.1.2.3":1})"), "unusable");
  std::string many = R"("x0")";
  for (int i = 1; i <= 500; ++i) many += ",\"x" + std::to_string(i) + "\"";
  EXPECT_EQ(query(R"({"a":{"$in":[)" + many + "]}}"),
            R"(($fieldnames:"a_3astring" $fieldnames:"a._5b_5d_3astring"))");
}

TEST_F(TextQueryTest, CombinesWhatRestricts) {
  EXPECT_EQ(query(R"({"a":1,"b":{"$exists":false}})"), R"(a_3anumber:"1")");
  EXPECT_EQ(query(R"({"b":{"$exists":false}})"), "unusable");
  EXPECT_EQ(query(R"({"$or":[{"a":1},{"b":{"$exists":false}}]})"), "unusable");
  EXPECT_EQ(query(R"({"$or":[{"a":1},{"b":2}],"c":3})"),
            R"((+(a_3anumber:"1" b_3anumber:"2") +c_3anumber:"3"))");
  EXPECT_EQ(query("{}"), "unusable");
  EXPECT_EQ(query(R"({"_rev":"1-a"})"), "unusable");
  // A text of stop words finds nothing, but does not prevent others.
  EXPECT_EQ(query(R"({"$text":"the"})"), "");
  EXPECT_EQ(query(R"({"$text":"the","a":1})"), R"(a_3anumber:"1")");
}

TEST_F(TextQueryTest, IdsAreInTheOrderOfTheirBytes) {
  EXPECT_EQ(query(R"({"_id":"x"})"), R"(_id:"x")");
  EXPECT_EQ(query(R"({"_id":{"$gt":"x"}})"), R"(_id:["x" TO *])");
  EXPECT_EQ(query(R"({"_id":{"$lte":"x"}})"), R"(_id:[* TO "x"])");
  EXPECT_EQ(query(R"({"_id":{"$beginsWith":"x"}})"), "_id:x*");
  EXPECT_EQ(query(R"({"_id":{"$in":["x",1,"y"]}})"), R"((_id:"x" _id:"y"))");
  EXPECT_EQ(query(R"({"_id":{"$gt":null}})"), "unusable");
  EXPECT_EQ(query(R"({"_id":{"$ne":"x"}})"), "unusable");
  EXPECT_EQ(query(R"({"a":{"$elemMatch":{"_id":"x"}}})"),
            R"((+$fieldnames:"a_3aarray" +a._5b_5d._5fid_3astring:"x"))");
}

// The number of paths would grow with each of them.
TEST_F(TextQueryTest, NestedNumbersArePlannedSoon) {
  std::string selector = R"({"x":1})";
  for (int depth = 0; depth < 20; ++depth) selector = R"({"a.0.0.0":{"$elemMatch":)" + selector + "}}";
  EXPECT_LT(query(selector).size(), 2'000'000u);
}

TEST_F(TextQueryTest, SelectiveQueriesReadFewDocuments) {
  const auto is_selective = [&](std::string_view selector) {
    const auto parsed = selector::Selector::parse(selector, selector::TextOperator::allowed);
    const auto index = definitions.text("_design/d", "{}");
    return text_query(parsed.condition(), *index.text->text_map(), index.text->analyzer())->is_selective;
  };
  for (const auto* selector :
       {R"({"a":1})", R"({"a":null})", R"({"a":{"$gt":1}})", R"({"a":{"$exists":true}})", R"({"$text":"x"})",
        R"({"a":{"$ne":1},"b":1})", R"({"a":{"$in":["x",1]}})", R"({"a":{"$elemMatch":{"b":1}}})"})
    EXPECT_TRUE(is_selective(selector)) << selector;
  for (const auto* selector :
       {R"({"a":{"$gt":"x"}})", R"({"a":{"$ne":1}})", R"({"a":{"$regex":"x"}})", R"({"a":{"$gt":null}})",
        R"({"$or":[{"a":1},{"a":{"$ne":2}}]})", R"({"a":[1]})"})
    EXPECT_FALSE(is_selective(selector)) << selector;
}

TEST_F(TextQueryTest, AnIndexOfSomeFieldsKnowsTheirTypes) {
  EXPECT_EQ(query(R"({"a":"x"})", kSome), R"(a_3astring:"x")");
  EXPECT_EQ(query(R"({"a":5})", kSome), R"($fieldnames:"a_3anumber")");
  EXPECT_EQ(
      query(R"({"n":{"$gt":5}})", kSome),
      R"((n_3anumber:[5 TO *] $fieldnames:"n_3astring" $fieldnames:"n_3aarray" $fieldnames:"n_3aobject"))");
  EXPECT_EQ(query(R"({"b":"x"})", kSome), "unusable");
  EXPECT_EQ(query(R"({"_id":"x"})", kSome), "unusable");
  EXPECT_EQ(query(R"({"b":{"$exists":true}})", kSome), "unusable");
  EXPECT_EQ(query(R"({"a":"x","b":1})", kSome), R"(a_3astring:"x")");
  EXPECT_EQ(query(R"({"t":{"$elemMatch":{"$eq":"x"}}})", kSome), R"(t._5b_5d_3astring:"x")");
  EXPECT_EQ(query(R"({"a":{"$in":["x"]}})", kSome), R"((a_3astring:"x" $fieldnames:"a_3aarray"))");
  EXPECT_EQ(query(R"({"t":{"$in":["x"]}})", kSome), "unusable");
  EXPECT_EQ(query(R"({"$text":"x"})", R"({"default_field":false})"), "unusable");
  EXPECT_EQ(query(R"({"$text":"x","a":1})", R"({"default_field":false})"), "unusable");
  EXPECT_EQ(query(R"({"a":{"$size":2}})", R"({"index_array_lengths":false})"), R"($fieldnames:"a_3aarray")");
}

// Their terms are words.
TEST_F(TextQueryTest, StringsOfOtherAnalyzersAreFoundByType) {
  constexpr std::string_view kWords = R"({"default_analyzer":"english"})";
  EXPECT_EQ(query(R"({"a":"Running"})", kWords), R"($fieldnames:"a_3astring")");
  EXPECT_EQ(query(R"({"a":{"$beginsWith":"R"}})", kWords), R"($fieldnames:"a_3astring")");
}

std::vector<std::string> sorted(std::string_view request) {
  const auto parsed = FindRequest::parse(json::compact(request));
  return text_sort(parsed.sort, parsed.selector.condition());
}

TEST_F(TextQueryTest, TheTypeOfASortFieldIsGivenOrKnown) {
  EXPECT_THAT(sorted(R"({"selector":{"a":1},"sort":["a"]})"), ElementsAre("a_3anumber<number>"));
  EXPECT_THAT(sorted(R"({"selector":{"$or":[{"a.b":{"$gt":"x"}},{"c":1}]},"sort":[{"a.b":"desc"}]})"),
              ElementsAre("-a.b_3astring<string>"));
  EXPECT_THAT(sorted(R"({"selector":{"_id":{"$gt":null}},"sort":["_id"]})"),
              ElementsAre("_5fid_3astring<string>"));
  EXPECT_THAT(sorted(R"({"selector":{"a":1},"sort":["b:number","l.[]:string"]})"),
              ElementsAre("b_3anumber<number>", "l._5b_5d_3astring<string>"));
  std::string many = R"("a:number")";
  for (std::size_t i = 1; i < kMaxTextSortFields; ++i) many += R"(,"a:number")";
  EXPECT_THAT(sorted(R"({"selector":{"a":1},"sort":[)" + many + "]}"), ::testing::SizeIs(kMaxTextSortFields));
  EXPECT_THAT(divan::error_of([&] { sorted(R"({"selector":{"a":1},"sort":["a:number",)" + many + "]}"); }),
              ::testing::HasSubstr("text_sort_error"));
  for (const auto* request :
       {R"({"selector":{"a":1},"sort":["b"]})", R"({"selector":{"a":{"$gt":null}},"sort":["a"]})",
        R"({"selector":{"$or":[{"a":1},{"a":"x"}]},"sort":["a"]})"})
    EXPECT_THAT(divan::error_of([&] { sorted(request); }), ::testing::HasSubstr("text_sort_error"))
        << request;
}

}  // namespace
}  // namespace divan::mango
