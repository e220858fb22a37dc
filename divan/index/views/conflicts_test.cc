// Map functions receive the conflicting leaves of a document, and views follow their changes.
#include <fmt/core.h>

#include "divan/index/views/views_testing.h"

namespace divan::index::views {
namespace {

struct Conflicts : testing::ViewsFixture {
  void replicate(std::initializer_list<const char*> documents) {
    std::vector<docs::IncomingDocument> parsed;
    for (const char* document : documents) parsed.push_back(docs::parse_document(json::compact(document)));
    docs::bulk_replicate(*store, catalog, "db", parsed);
  }

  // Rows of the view: id and value.
  std::string rows() {
    build();
    std::string found;
    const std::string result = query("v");
    json::for_each_element(*json::member(result, "rows"), [&](std::string_view row) {
      found += fmt::format("{} {}\n", *json::member(row, "id"), *json::member(row, "value"));
      return true;
    });
    return found;
  }

  // The rows of the changes feed as older versions wrote them.
  void forget_other_leaves() {
    store->run([&](kv::Transaction& tx) {
      const auto database = catalog.open(tx, "db");
      for (const auto& row : tx.get_range(kv::below(database.keys().section(docs::Section::changes))).rows) {
        kv::tuple::Reader reader(row.value);
        reader.take_string();
        reader.take_bool();
        reader.take_int();
        reader.take_bytes();
        if (!reader.take_int()) reader.take_versionstamp();
        reader.take_int();
        tx.set(row.key, row.value.substr(0, row.value.size() - reader.rest().size()));
      }
    });
  }
};

constexpr const char* kView =
    R"({"v":{"map":"function(doc) { emit(null, [doc._rev, doc._conflicts, doc._deleted_conflicts]); }"}})";

TEST_F(Conflicts, AFirstBuildPassesThem) {
  for (const bool old_rows : {false, true}) {
    SCOPED_TRACE(old_rows);
    replicate({R"({"_id":"a","_rev":"2-b","_revisions":{"start":2,"ids":["b","a"]}})",
               R"({"_id":"a","_rev":"2-c","_revisions":{"start":2,"ids":["c","a"]}})",
               R"({"_id":"a","_rev":"3-e","_deleted":true,"_revisions":{"start":3,"ids":["e","d","a"]}})",
               R"({"_id":"b","_rev":"1-x"})", R"({"_id":"c","_rev":"1-x","_deleted":true})",
               R"({"_id":"c","_rev":"1-y","_deleted":true})"});
    if (old_rows) forget_other_leaves();
    put_design(kView);
    EXPECT_EQ(rows(),
              "\"a\" [\"2-c\",[\"2-b\"],[\"3-e\"]]\n"
              "\"b\" [\"1-x\",null,null]\n");
    store->run([&](kv::Transaction& tx) { catalog.remove(tx, "db"); });
    store->run([&](kv::Transaction& tx) { catalog.create(tx, "db"); });
  }
}

// A change of a losing leaf does not change the winner.
TEST_F(Conflicts, ChangesOfLosingLeavesUpdateTheIndex) {
  put_design(kView);
  replicate({R"({"_id":"a","_rev":"2-b","_revisions":{"start":2,"ids":["b","a"]}})"});
  EXPECT_EQ(rows(), "\"a\" [\"2-b\",null,null]\n");
  replicate({R"({"_id":"a","_rev":"1-c"})"});
  EXPECT_EQ(rows(), "\"a\" [\"2-b\",[\"1-c\"],null]\n");
  replicate({R"({"_id":"a","_rev":"2-a","_revisions":{"start":2,"ids":["a","c"]}})"});
  EXPECT_EQ(rows(), "\"a\" [\"2-b\",[\"2-a\"],null]\n");
  put(R"({"_id":"a","_rev":"2-a","_deleted":true})");
  EXPECT_THAT(rows(), ::testing::StartsWith(R"("a" ["2-b",null,["3-)"));
  // Deleting the winner makes another leaf the winner, which this edit did not write.
  replicate({R"({"_id":"a","_rev":"1-d"})"});
  put(R"({"_id":"a","_rev":"2-b","_deleted":true})");
  EXPECT_THAT(rows(), ::testing::StartsWith(R"("a" ["1-d",null,["3-)"));
}

}  // namespace
}  // namespace divan::index::views
