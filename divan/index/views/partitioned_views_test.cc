// Views of a partitioned database, whose rows are ordered by partition first.
#include <fmt/core.h>

#include <map>

#include "divan/index/views/views_testing.h"

namespace divan::index::views {
namespace {

struct PartitionedViews : testing::ViewsFixture {
  void SetUp() override {
    ViewsFixture::SetUp();
    store->run([&](kv::Transaction& tx) {
      catalog.remove(tx, "db");
      catalog.create(tx, "db", true);
    });
  }

  // The ids of a partition's rows, and their sum.
  std::string rows(const std::string& partition,
                   std::vector<std::pair<std::string, std::string>> params = {}) {
    params.emplace_back("partition", partition);
    const std::string reduced = query("v", params);
    params.emplace_back("reduce", "false");
    return ids_and_values(query("v", params), reduced);
  }
};

constexpr const char* kPartSum = R"({"v":{"map":"function(doc) { emit(doc.n, doc.n); }","reduce":"_sum"}})";

TEST_F(PartitionedViews, HaveThePartitionsRows) {
  put_design(kPartSum);
  // Names that begin with another one, and with bytes that the encoding escapes.
  for (const char* json : {R"({"_id":"a:1","n":2})", R"({"_id":"a:2","n":1})", R"({"_id":"aa:1","n":1})",
                           R"({"_id":"a\u0000:1","n":5})", R"({"_id":"B:1","n":9})"})
    put(json);
  build();
  EXPECT_EQ(rows("a"), "a:2 a:1 3");
  EXPECT_EQ(rows("aa"), "aa:1 1");
  EXPECT_EQ(rows(std::string("a\0", 2)), std::string("a\0:1 5", 6));
  EXPECT_EQ(rows("b"), "");
  EXPECT_EQ(rows("a", {{"key", "2"}}), "a:1 2");
  EXPECT_EQ(rows("a", {{"start_key", "2"}}), "a:1 2");
  EXPECT_EQ(rows("a", {{"end_key", "1"}}), "a:2 1");
  EXPECT_EQ(rows("a", {{"descending", "true"}, {"start_key", "1"}}), "a:2 1");
  EXPECT_EQ(rows("a", {{"descending", "true"}}), "a:1 a:2 3");
  EXPECT_THAT(findings(), ::testing::IsEmpty());
}

// Against a sum of the documents, with reduce nodes: many rows, changed and deleted ones, groups and ranges.
TEST_F(PartitionedViews, ReduceARangeOfAPartition) {
  put_design(R"({"v":{"map":"function(doc) { emit([doc.n % 10, doc.n], doc.n); }","reduce":"_sum"}})");
  std::map<std::string, std::map<int, int>> sums;  // by partition and n % 10
  std::vector<docs::IncomingDocument> documents;
  for (int n = 0; n < 3'000; ++n) {
    const std::string partition = fmt::format("p{}", n % 3);
    documents.push_back(docs::parse_document(fmt::format(R"({{"_id":"{}:{}","n":{}}})", partition, n, n)));
    sums[partition][n % 10] += n;
  }
  const auto written = docs::bulk_edit(*store, catalog, "db", documents, rng);
  build();
  documents.clear();
  for (int n = 0; n < 300; n += 7) {
    const auto& result = written[static_cast<std::size_t>(n)];
    documents.push_back(docs::parse_document(fmt::format(R"({{"_id":"{}","_rev":"{}","_deleted":true}})",
                                                         result.id, result.revision.to_string())));
    sums[fmt::format("p{}", n % 3)][n % 10] -= n;
  }
  docs::bulk_edit(*store, catalog, "db", documents, rng);
  build();
  for (const auto& [partition, by_digit] : sums) {
    std::string groups;
    int total = 0, middle = 0;
    for (const auto& [digit, sum] : by_digit) {
      if (!groups.empty()) groups += ',';
      groups += fmt::format(R"({{"key":[{}],"value":{}}})", digit, sum);
      total += sum;
      if (digit >= 3 && digit < 7) middle += sum;
    }
    const auto value = [](int sum) { return fmt::format(R"({{"rows":[{{"key":null,"value":{}}}]}})", sum); };
    EXPECT_EQ(query("v", {{"partition", partition}}), value(total));
    EXPECT_EQ(query("v", {{"partition", partition}, {"start_key", "[3]"}, {"end_key", "[7]"}}),
              value(middle));
    EXPECT_EQ(query("v", {{"partition", partition}, {"group_level", "1"}}), R"({"rows":[)" + groups + "]}");
  }
  EXPECT_THAT(findings(), ::testing::IsEmpty());
}

TEST_F(PartitionedViews, LackRowsOfDesignDocuments) {
  put(R"({"_id":"_design/d","options":{"include_design":true},"views":)" + std::string(kPartSum) + "}");
  put(R"({"_id":"a:1","n":1})");
  build();
  EXPECT_EQ(rows("a"), "a:1 1");
  EXPECT_THAT(findings(), ::testing::IsEmpty());
}

TEST_F(PartitionedViews, AreAnotherIndexThanGlobalOnes) {
  put_design(kPartSum);
  const auto partitioned = index();
  EXPECT_TRUE(partitioned->origin().is_partitioned);
  const auto body = [](const char* options) {
    return std::string(R"({"options":{)") + options + R"(},"views":)" + kPartSum + "}";
  };
  const auto database = store->run([&](kv::Transaction& tx) { return catalog.open(tx, "db"); });
  store->run([&](kv::Transaction& tx) { catalog.create(tx, "other"); });
  const auto other = store->run([&](kv::Transaction& tx) { return catalog.open(tx, "other"); });
  const auto signature = [&](const std::string& text, const docs::Database& of) {
    return kinds.front()->indexes("_design/d", text, &of).front()->signature();
  };
  EXPECT_EQ(signature(body(R"("partitioned":true)"), database), partitioned->signature());
  EXPECT_NE(signature(body(R"("partitioned":false)"), database), partitioned->signature());
  EXPECT_EQ(signature(body(R"("partitioned":false)"), database), signature(body(""), other));
  // Of a replicated design document, which is not checked.
  EXPECT_EQ(signature(body(R"("partitioned":true)"), other), signature(body(""), other));
}

}  // namespace
}  // namespace divan::index::views
