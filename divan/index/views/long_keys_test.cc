// Keys that are too long for the store's keys are sorted and found like any other.
#include <fmt/core.h>

#include "divan/base/bytes.h"
#include "divan/index/views/reduce_nodes_testing.h"
#include "divan/index/views/views_testing.h"

namespace divan::index::views {
namespace {

using Params = std::vector<std::pair<std::string, std::string>>;

struct LongKeys : testing::ViewsFixture {
  // The documents of the rows that a query shows.
  std::string ids(const Params& params) {
    std::string found;
    const std::string result = query("v", params);
    json::for_each_element(*json::member(result, "rows"), [&](std::string_view row) {
      found += *json::string_value(*json::member(row, "id"));
      return true;
    });
    return found;
  }
  std::string key(std::string_view end) const { return '"' + text + std::string(end) + '"'; }
  void put_text(std::string_view id, std::string_view key, std::string_view rev = {}) {
    std::string document = fmt::format(R"({{"_id":"{}","k":{})", id, key);
    if (!rev.empty()) document += fmt::format(R"(,"_rev":"{}")", rev);
    revisions[std::string(id)] = put(document + "}");
  }

  const std::string text = [] {
    std::string characters;
    for (int i = 0; i < 1'800; ++i) characters += "\u6f22";
    return characters;
  }();
  std::map<std::string, std::string> revisions;
};

TEST_F(LongKeys, AreRowsLikeAnyOthers) {
  put_design(R"({"v":{"map":"function(doc) { emit(doc.k, doc._id); }"}})");
  // In the order of their keys: a, then c and d with the same key, b, e, f.
  put_text("f", "[1]");
  put_text("b", key("b"));
  put_text("d", key("aa"));
  put_text("a", "\"a\"");
  put_text("c", key("aa"));
  put_text("e", key("b\u6f22"));
  build();
  EXPECT_EQ(ids({}), "acdbef");
  EXPECT_EQ(ids({{"descending", "true"}}), "febdca");
  EXPECT_THAT(query("v"), ::testing::HasSubstr(R"({"id":"e","key":)" + key("b\u6f22") + R"(,"value":"e"})"));
  EXPECT_EQ(ids({{"key", key("aa")}}), "cd");
  EXPECT_EQ(ids({{"key", key("a")}}), "");
  EXPECT_EQ(ids({{"key", key("")}}), "");
  EXPECT_EQ(ids({{"keys", "[" + key("b") + "," + key("aa") + ",\"a\"]"}}), "bcda");
  EXPECT_EQ(ids({{"start_key", key("b")}}), "bef");
  EXPECT_EQ(ids({{"start_key", key("aaa")}}), "bef");
  EXPECT_EQ(ids({{"start_key", key("")}}), "cdbef");
  EXPECT_EQ(ids({{"start_key", key("z")}}), "f");
  EXPECT_EQ(ids({{"end_key", key("b")}}), "acdb");
  EXPECT_EQ(ids({{"end_key", key("b")}, {"inclusive_end", "false"}}), "acd");
  EXPECT_EQ(ids({{"end_key", key("")}}), "a");
  EXPECT_EQ(ids({{"start_key", key("aa")}, {"end_key", key("b")}}), "cdb");
  EXPECT_EQ(ids({{"start_key", key("b")}, {"end_key", key("aa")}, {"descending", "true"}}), "bdc");
  EXPECT_EQ(ids({{"start_key", key("aa")}, {"start_key_doc_id", "d"}}), "dbef");
  EXPECT_EQ(ids({{"end_key", key("aa")}, {"end_key_doc_id", "c"}}), "ac");
  EXPECT_EQ(ids({{"skip", "2"}, {"limit", "2"}}), "db");
  EXPECT_EQ(ids({{"skip", "1"}, {"limit", "3"}, {"descending", "true"}}), "ebd");
  EXPECT_THAT(query("v", {{"limit", "0"}}), ::testing::HasSubstr(R"("total_rows":6)"));

  put_text("c", key("bb"), revisions["c"]);
  put(fmt::format(R"({{"_id":"b","_deleted":true,"_rev":"{}"}})", revisions["b"]));
  build();
  EXPECT_EQ(ids({}), "adcef");
  put_text("c", "0", revisions["c"]);
  put_text("e", "1", revisions["e"]);
  put_text("d", "2", revisions["d"]);
  build();
  EXPECT_EQ(ids({}), "cedaf");
  const auto left = store->run([&](kv::Transaction& tx) {
    const IndexKeys keys(catalog.open(tx, "db"), index()->signature());
    return tx.get_range({keys.part(kRowsPart), keys.part(kDocumentsPart)}).rows.size();
  });
  EXPECT_EQ(left, 5u);
}

// Ids of up to 4,000 bytes follow keys: a row key may be long although its view key is not.
TEST_F(LongKeys, ALongIdDoesNotMakeALongKey) {
  put_design(R"({"v":{"map":"function(doc) { emit(doc.k, null); }"}})");
  const std::string id(3'900, 'i');
  const std::string short_key = '"' + std::string(3'000, 'k') + '"';
  for (const auto* end : {"1", "2", "3"}) put_text(id + end, short_key);
  build();
  EXPECT_EQ(ids({{"start_key", short_key}, {"start_key_doc_id", id + "2"}}), id + "2" + id + "3");
  EXPECT_EQ(ids({{"end_key", short_key}, {"end_key_doc_id", id + "2"}}), id + "1" + id + "2");
  EXPECT_EQ(ids({{"skip", "1"}, {"limit", "1"}}), id + "2");
}

// More keys with a common prefix than are held in memory at once, and than a page shows.
TEST(ManyLongKeys, AreReadInPieces) {
  testing::ReduceNodesHarness harness(R"({"all":{"map":"f","reduce":"_count"}})", {});
  constexpr int kDocuments = 100;
  constexpr int kRows = 10;
  const std::string text(kMaxWholeKeyBytes, 'x');
  std::map<std::string, testing::ReduceNodesHarness::Rows> documents;
  for (int d = 0; d < kDocuments; ++d) {
    auto& rows = documents[fmt::format("{:03}", d)];
    for (int n = 0; n < kRows; ++n)
      rows.emplace_back(0, fmt::format("[\"{}\",{}]", text, n * kDocuments + d), "1");
  }
  harness.write(documents);
  for (const bool descending : {false, true}) {
    ViewParams params;
    params.reduce = false;
    params.descending = descending;
    const std::string result = harness.query("all", params);
    int expected = descending ? kDocuments * kRows : -1;
    std::size_t rows = 0;
    json::for_each_element(*json::member(result, "rows"), [&](std::string_view row) {
      const auto key = *json::member(row, "key");
      expected += descending ? -1 : 1;
      EXPECT_TRUE(key.ends_with(fmt::format(",{}]", expected)));
      return ++rows > 0;
    });
    EXPECT_EQ(rows, std::size_t{kDocuments * kRows});
  }
  ViewParams part;
  part.start_key = fmt::format("[\"{}\",5]", text);
  part.end_key = fmt::format("[\"{}\",994]", text);
  EXPECT_EQ(harness.query("all", part), R"({"rows":[{"key":null,"value":990}]})");
  part.group_level = 1;
  EXPECT_THAT(harness.query("all", part), ::testing::EndsWith(R"(,"value":990}]})"));
}

}  // namespace
}  // namespace divan::index::views
