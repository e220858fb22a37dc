#include "divan/docs/partition.h"

#include "divan/base/precompiled_test.h"
#include "divan/docs/check.h"
#include "divan/docs/partition_setting.h"
#include "divan/docs/testing.h"
#include "divan/kv/check_testing.h"

namespace divan::docs {
namespace {

class Partitions : public DocsTest {
 protected:
  void SetUp() override {
    store->run([&](kv::Transaction& tx) { catalog.create(tx, "db", true); });
  }
  PartitionInfo partition(std::string_view name) { return read_partition_info(*store, catalog, "db", name); }

  static std::string refusal(std::string_view id) {
    try {
      check_partitioned_id(id);
    } catch (const Error& error) { return error.name() + ": " + error.reason(); }
    return "";
  }
};

TEST_F(Partitions, IdsBeginWithThem) {
  for (const char* id : {"a:b", "a:b:c", "a: ", "_design/x", "_local/x"}) EXPECT_EQ(refusal(id), "") << id;
  EXPECT_EQ(refusal("a"), "illegal_docid: Doc id must be of form partition:id");
  EXPECT_EQ(refusal(":a"), "illegal_partition: Partition must not be empty");
  EXPECT_EQ(refusal("a:"), "illegal_docid: Document id must not be empty");
  EXPECT_EQ(refusal("a:_b"), "illegal_docid: Only reserved document ids may start with underscore.");
  EXPECT_EQ(refusal("_a:b"), "illegal_partition: Partition must not start with an underscore");
  EXPECT_EQ(partition_of("a:b:c"), "a");
  EXPECT_EQ(partition_of("a"), std::nullopt);
  EXPECT_EQ(partition_of("_design/a:b"), std::nullopt);
}

TEST_F(Partitions, OtherIdsAreRefusedWithTheWholeRequest) {
  std::vector<IncomingDocument> documents;
  for (const char* json : {R"({"_id":"a:1"})", R"({"_id":"b"})"}) documents.push_back(parse_document(json));
  EXPECT_THROW(bulk_edit(*store, catalog, "db", documents, rng), Error);
  documents[0].revision = documents[1].revision = parse_revision("1-x");
  EXPECT_THROW(bulk_replicate(*store, catalog, "db", documents), Error);
  EXPECT_EQ(info().doc_count, 0) << "nothing is written";
  with_db([](kv::Transaction& tx, const Database& db) {
    EXPECT_THROW(find_document(tx, db, "b", {}), Error);
    Writer writer(tx, db);
    EXPECT_THROW(writer.edit(parse_document(R"({"_id":"b"})")), Error);
  });
}

TEST_F(Partitions, AreCounted) {
  put(R"({"_id":"a:1","n":1})");
  put(R"({"_id":"a:2"})");
  put(R"({"_id":"a:3","_deleted":true})");
  replicate({R"({"_id":"a:4","_rev":"1-b"})", R"({"_id":"a:4","_rev":"9-c","_deleted":true})"});
  put(R"({"_id":"aa:1"})");
  put(R"({"_id":"_design/a"})");
  EXPECT_EQ(partition("a").doc_count, 3);
  EXPECT_EQ(partition("a").doc_del_count, 1);
  EXPECT_EQ(partition("a").body_bytes, 7 + 4 * 2);
  EXPECT_EQ(partition("aa").doc_count, 1);
  EXPECT_EQ(partition("b").doc_count, 0);
}

TEST_F(Partitions, LargeOnesAreCountedInSeveralTransactions) {
  std::vector<IncomingDocument> documents;
  for (int i = 0; i < 12'000; ++i)
    documents.push_back(parse_document(R"({"_id":"a:)" + std::to_string(i) + "\"}"));
  bulk_edit(*store, catalog, "db", documents, rng);
  int checkpoints = 0;
  EXPECT_EQ(read_partition_info(*store, catalog, "db", "a", [&] { ++checkpoints; }).doc_count, 12'000);
  EXPECT_EQ(checkpoints, 2);
}

TEST_F(Partitions, BelongToPartitionedDatabases) {
  store->run([&](kv::Transaction& tx) {
    EXPECT_TRUE(catalog.open(tx, "db").is_partitioned());
    EXPECT_FALSE(catalog.create(tx, "other").is_partitioned());
    EXPECT_THROW(catalog.create(tx, "_users", true), Error);
  });
  EXPECT_THROW(read_partition_info(*store, catalog, "other", "a"), Error);
  // What adopts its rows is partitioned, too.
  store->run([&](kv::Transaction& tx) {
    const auto number = catalog.open(tx, "db").number();
    EXPECT_TRUE(catalog.adopt(tx, "copy", number, 0).is_partitioned());
    EXPECT_TRUE(catalog.open(tx, "copy").is_partitioned());
  });
}

TEST_F(Partitions, ARecordThatDisagreesWithTheSettingsIsFound) {
  const auto number = with_db([](kv::Transaction&, const Database& db) { return db.number(); });
  kv::testing::MapRows rows(*store);
  const auto findings = [&] {
    kv::Findings found;
    Check check(INT64_MAX, found);
    kv::testing::run_checks(rows, {&check});
    return found.kept();
  };
  EXPECT_THAT(findings(), ::testing::IsEmpty());
  rows.map().erase(DatabaseKeys(number).config(kPartitioned));
  EXPECT_THAT(findings(), ::testing::ElementsAre(::testing::HasSubstr("whether it is partitioned")));
}

TEST_F(Partitions, RangesAreCutToThem) {
  const auto cut = [](DocumentRange range) {
    range = in_partition(range, "p");
    return range.start_id.value_or("-") + " " + range.end_id.value_or("-");
  };
  EXPECT_EQ(cut({}), "p: p;");
  EXPECT_EQ(cut({.descending = true}), "p; p:");
  EXPECT_EQ(cut({.start_id = "p:b", .end_id = "p:c"}), "p:b p:c");
  EXPECT_EQ(cut({.start_id = "a", .end_id = "z"}), "p: p;");
  EXPECT_EQ(cut({.start_id = "z", .end_id = "a", .descending = true}), "p; p:");
}

}  // namespace
}  // namespace divan::docs
