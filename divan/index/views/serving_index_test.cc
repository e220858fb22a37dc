#include "divan/index/serving_index.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "divan/base/json.h"
#include "divan/docs/reader.h"
#include "divan/docs/writer.h"
#include "divan/index/unused.h"
#include "divan/index/views/view_kind.h"
#include "divan/kv/embedded/temporary_store.h"

namespace divan::index::views {
namespace {

// A design document with one view, whose map function emits a number. Indexes are built by writing their
// sequence.
struct ServingIndex : ::testing::Test {
  SystemClock clock;
  kv::embedded::TemporaryStore store;
  events::Bus bus;
  SeededRng rng{1};
  docs::Catalog catalog{bus, clock};
  js::Pool pool{{.binary = DIVAN_JS_BINARY, .processes = 1}, clock};
  Kinds kinds;
  std::string revision;

  void SetUp() override {
    kinds.push_back(std::make_unique<ViewKind>(pool));
    catalog.on_design_document(
        [this](kv::Transaction& tx, const docs::Database& database, std::string_view id,
               std::string_view body) { retain_serving_index(tx, database, kinds, std::string(id), body); });
    store->run([&](kv::Transaction& tx) { catalog.create(tx, "db"); });
  }

  static std::string body(int number) {
    return fmt::format(R"("views":{{"v":{{"map":"function(doc) {{ emit({}); }}"}}}})", number);
  }
  void put(const std::string& members) {
    const std::string rev = revision.empty() ? "" : R"("_rev":")" + revision + "\",";
    std::vector documents{
        docs::parse_document(json::compact(R"({"_id":"_design/d",)" + rev + members + "}"))};
    const auto result = docs::bulk_edit(*store, catalog, "db", documents, rng).front();
    ASSERT_FALSE(result.error) << result.error->what();
    revision = result.revision.to_string();
  }
  // The design document's current index, and the one that serves queries that do not wait.
  std::pair<IndexPtr, IndexPtr> indexes(kv::Transaction& tx) {
    const auto database = catalog.open(tx, "db");
    const auto [id, winner] = design_documents(tx, database).at(0);
    const auto current = indexes_of(tx, database, kinds, id, winner).at(0);
    return {current, serving_index(tx, database, kinds, winner, current)};
  }
  // The number that the serving index's function emits.
  int served_number() {
    const auto index = store->run([&](kv::Transaction& tx) { return indexes(tx).second; });
    const auto& map = std::dynamic_pointer_cast<const ViewIndex>(index)->find("v")->map;
    return std::stoi(map.substr(map.find("emit(") + 5));
  }
  void build() {
    store->run([&](kv::Transaction& tx) {
      const auto database = catalog.open(tx, "db");
      write_sequence(tx, IndexKeys(database, indexes(tx).first->signature()),
                     docs::last_sequence(tx, database));
    });
  }
  std::size_t clean_up() {
    return store->run([&](kv::Transaction& tx) { return remove_unused(tx, catalog.open(tx, "db"), kinds); });
  }
};

TEST_F(ServingIndex, IsTheOldIndexUntilTheNewOneIsComplete) {
  put(body(1));
  EXPECT_EQ(served_number(), 1);
  build();
  put(body(2));
  EXPECT_EQ(served_number(), 1);
  EXPECT_EQ(clean_up(), 0u);
  build();
  EXPECT_EQ(served_number(), 2);
  EXPECT_EQ(clean_up(), 1u);
}

TEST_F(ServingIndex, IsTheLastCompleteOneOfSeveral) {
  put(body(1));
  build();
  put(body(2));
  put(body(3));
  EXPECT_EQ(served_number(), 1);
  build();
  put(body(4));
  EXPECT_EQ(served_number(), 3);
}

TEST_F(ServingIndex, IsKeptIfAChangeDoesNotConcernTheIndex) {
  put(body(1));
  build();
  put(body(2));
  build();
  put(body(2) + R"(,"filters":{})");
  EXPECT_EQ(served_number(), 2);
}

TEST_F(ServingIndex, KeepsItsOptions) {
  const std::string options = R"("options":{"include_design":true},)";
  put(options + body(1));
  build();
  put(options + body(2));
  EXPECT_EQ(served_number(), 1);
  put(body(2));
  EXPECT_EQ(served_number(), 1);
}

TEST_F(ServingIndex, IsNotARemovedIndex) {
  put(body(1));
  build();
  put(body(2));
  store->run([&](kv::Transaction& tx) {
    tx.clear_range(kv::below(catalog.open(tx, "db").keys().section(docs::Section::indexes)));
  });
  EXPECT_EQ(served_number(), 2);
}

TEST_F(ServingIndex, IsForgottenWithADeletedDesignDocument) {
  put(body(1));
  build();
  put(body(2));
  put(R"("_deleted":true)");
  revision.clear();
  put(body(3));
  EXPECT_EQ(served_number(), 3);
}

}  // namespace
}  // namespace divan::index::views
