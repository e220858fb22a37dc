// Indexes of Mango: rows that the server computes from the fields of documents.
#include "divan/index/views/field_mapper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "divan/index/views/views_testing.h"

namespace divan::index::views {
namespace {

using ::testing::HasSubstr;

std::optional<std::string> key_of(std::string_view definition, std::string_view document) {
  return FieldMap::parse(definition).key_of(document);
}

TEST(FieldMap, KeysAreTheFieldsAsTheyAreWritten) {
  const auto* fields = R"({"fields":{"a":"asc","b.c":"asc"}})";
  EXPECT_EQ(key_of(fields, R"({"a":1.50,"b":{"c":[1,null]}})"), "[1.50,[1,null]]");
  EXPECT_EQ(key_of(fields, R"({"a":null,"b":{"c":{}}})"), "[null,{}]");
  EXPECT_EQ(key_of(fields, R"({"a":1,"b":2})"), std::nullopt);
  EXPECT_EQ(key_of(fields, R"({"b":{"c":1}})"), std::nullopt);
  EXPECT_EQ(key_of(R"({"fields":{}})", "{}"), "[]");
}

TEST(FieldMap, AFilterChoosesDocuments) {
  for (const auto* name : {"partial_filter_selector", "selector"}) {
    const std::string map = std::string(R"({"fields":{"a":"asc"},")") + name + R"(":{"b":{"$gt":1}}})";
    EXPECT_EQ(key_of(map, R"({"a":1,"b":2})"), "[1]");
    EXPECT_EQ(key_of(map, R"({"a":1,"b":1})"), std::nullopt);
  }
  EXPECT_EQ(key_of(R"({"fields":{"a":"asc"},"partial_filter_selector":{}})", R"({"a":1})"), "[1]");
}

TEST(FieldMap, InvalidOnesAreRefused) {
  for (const auto* definition : {R"({})", R"({"fields":[]})", R"({"fields":["a"]})", R"({"fields":{"a":1}})",
                                 R"({"fields":{"a":"up"}})", R"({"fields":{"a..b":"asc"}})",
                                 R"({"fields":{"a":"asc"},"partial_filter_selector":{"b":{"$x":1}}})",
                                 R"({"fields":{"a":"asc"},"partial_filter_selector":1})"})
    EXPECT_THROW(FieldMap::parse(definition), Error) << definition;
}

struct FieldIndex : testing::ViewsFixture {
  void define(std::string_view views) {
    put(R"({"_id":"_design/d","language":"query","views":)" + std::string(views) + "}");
  }
  std::string rows(std::string_view view) { return query(view); }
};

TEST_F(FieldIndex, FollowsItsDocuments) {
  define(R"({"i":{"map":{"fields":{"n":"asc"}},"reduce":"_count"}})");
  EXPECT_EQ(index()->mapper().language(), "query");
  const auto rev = put(R"({"_id":"a","n":2})");
  put(R"({"_id":"b","n":1})");
  put(R"({"_id":"c"})");
  build();
  EXPECT_EQ(rows("i"), R"({"total_rows":2,"offset":0,"rows":[{"id":"b","key":[1],"value":null},)"
                       R"({"id":"a","key":[2],"value":null}]})");
  put(R"({"_id":"a","_rev":")" + rev + R"(","n":0})");
  put(R"({"_id":"d","n":1})");
  build();
  EXPECT_EQ(rows("i"), R"({"total_rows":3,"offset":0,"rows":[{"id":"a","key":[0],"value":null},)"
                       R"({"id":"b","key":[1],"value":null},{"id":"d","key":[1],"value":null}]})");
}

TEST_F(FieldIndex, HasNoDesignDocuments) {
  define(R"({"i":{"map":{"fields":{"_id":"asc"}}}})");
  put(R"({"_id":"a"})");
  build();
  EXPECT_EQ(rows("i"), R"({"total_rows":1,"offset":0,"rows":[{"id":"a","key":["a"],"value":null}]})");
}

TEST_F(FieldIndex, TakesSeveralBatches) {
  define(
      R"({"i":{"map":{"fields":{"n":"asc"}}},"j":{"map":{"fields":{"m":"asc"},"partial_filter_selector":{"n":{"$lt":5}}}}})");
  for (int n = 0; n < 20; ++n)
    put(R"({"_id":"d)" + std::to_string(n) + R"(","n":)" + std::to_string(n) + R"(,"m":1})");
  build();
  EXPECT_THAT(rows("i"), HasSubstr(R"("total_rows":20)"));
  EXPECT_THAT(rows("j"), HasSubstr(R"("total_rows":5)"));
}

// A document for which a filter takes too long is left out; the others are indexed.
TEST_F(FieldIndex, AnExpensiveFilterLeavesTheDocumentOut) {
  std::string filter = R"({"$or":[)";
  for (int i = 0; i < 40; ++i) filter += R"({"t":"x)" + std::to_string(i) + R"("},)";
  filter += R"({"t":{"$exists":true}}]})";
  define(R"({"i":{"map":{"fields":{"n":"asc"},"partial_filter_selector":)" + filter + "}}}");
  put(R"({"_id":"a","n":1,"t":"y"})");
  put(R"({"_id":"b","n":2,"t":")" + std::string(1'000'000, 'y') + R"("})");
  build();
  EXPECT_EQ(rows("i"), R"({"total_rows":1,"offset":0,"rows":[{"id":"a","key":[1],"value":null}]})");
  const auto left_out = store->run([&](kv::Transaction& tx) {
    return read_left_out(tx, IndexKeys(catalog.open(tx, "db"), index()->signature()));
  });
  EXPECT_EQ(left_out.documents, 1);
}

TEST_F(FieldIndex, ADefinitionIsPartOfTheSignature) {
  const auto signature_of = [&](std::string_view map) {
    const std::string body = R"({"language":"query","views":{"i":{"map":)" + std::string(map) + "}}}";
    return parse_views("_design/d", body, pool, {})->signature();
  };
  const auto plain = signature_of(R"({"fields":{"n":"asc"}})");
  EXPECT_EQ(plain, signature_of(R"({"fields":{"n":"asc"}})"));
  EXPECT_NE(plain, signature_of(R"({"fields":{"m":"asc"}})"));
  EXPECT_NE(plain, signature_of(R"({"fields":{"n":"asc"},"partial_filter_selector":{"n":1}})"));
}

TEST_F(FieldIndex, InvalidDefinitionsAreRefused) {
  const ViewKind kind(pool);
  const auto check = [&](std::string_view view) {
    const std::string body = R"({"language":"query","views":{"i":)" + std::string(view) + "}}";
    kind.check("_design/d", body, {});
  };
  EXPECT_NO_THROW(check(R"({"map":{"fields":{"n":"asc"}},"reduce":"_count","options":{}})"));
  EXPECT_THROW(check(R"({"map":{"fields":1}})"), Error);
  EXPECT_THROW(check(R"({"map":{"fields":{"n":"asc"},"selector":{"$x":1}}})"), Error);
}

}  // namespace
}  // namespace divan::index::views
