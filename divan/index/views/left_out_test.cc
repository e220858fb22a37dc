// The records of documents whose rows are missing from an index.
#include "divan/index/left_out.h"

#include "divan/index/views/views_testing.h"

namespace divan::index::views {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct LeftOutRows : testing::ViewsFixture {
  LeftOutSummary summary(std::size_t examples = kLeftOutExamples) {
    build();
    return store->run([&](kv::Transaction& tx) {
      return read_left_out(tx, IndexKeys(catalog.open(tx, "db"), index()->signature()), examples);
    });
  }
  std::vector<std::string> ids() {
    std::vector<std::string> found;
    for (const auto& example : summary().examples) found.push_back(example.id);
    return found;
  }
};

TEST_F(LeftOutRows, AreCountedUntilTheirDocumentsAreRepairedOrDeleted) {
  put_design(
      R"({"v":{"map":"function(doc) { emit(doc._id); if (doc.bad) throw 'no ' + doc.bad; }"},"w":{"map":"function(doc) { emit(1); }"}})");
  EXPECT_EQ(summary().documents, 0);
  const auto a = put(R"({"_id":"a","bad":1})");
  const auto b = put(R"({"_id":"b","bad":2})");
  const auto first = summary();
  EXPECT_EQ(first.documents, 2);
  ASSERT_EQ(first.examples.size(), 2u);
  EXPECT_EQ(first.examples[0].id, "a");
  EXPECT_THAT(first.examples[0].left_out.reason, HasSubstr("View `v`: "));
  EXPECT_THAT(first.examples[0].left_out.reason, HasSubstr("no 1"));
  // Neither good documents nor another build remove the record.
  for (int i = 0; i < 20; ++i) put("{}");
  EXPECT_THAT(ids(), ElementsAre("a", "b"));
  const auto changed = put(R"({"_id":"a","bad":3,"_rev":")" + a + "\"}");
  EXPECT_THAT(summary().examples[0].left_out.reason, HasSubstr("no 3"));
  EXPECT_EQ(summary(1).examples.size(), 1u);
  EXPECT_EQ(summary().documents, 2);
  put(R"({"_id":"a","_rev":")" + changed + "\"}");
  EXPECT_THAT(ids(), ElementsAre("b"));
  put(R"({"_id":"b","_deleted":true,"_rev":")" + b + "\"}");
  EXPECT_THAT(ids(), IsEmpty());
  EXPECT_EQ(summary().documents, 0);
}

}  // namespace
}  // namespace divan::index::views
