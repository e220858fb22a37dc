#include "divan/ken/ken.h"

#include "divan/base/json.h"
#include "divan/docs/reader.h"
#include "divan/docs/writer.h"
#include "divan/index/views/view_index.h"
#include "divan/jobs/attempts.h"
#include "divan/kv/embedded/temporary_store.h"

namespace divan::ken {
namespace {

struct KenTest : testing::Test {
  kv::embedded::TemporaryStore store;
  events::Bus bus;
  SystemClock clock;
  SeededRng rng{1};
  docs::Catalog catalog{bus, clock};
  workers::Registry registry{rng};
  jobs::Queue queue{registry, clock, rng};
  js::Pool pool{{.binary = DIVAN_JS_BINARY}, clock};
  index::Kinds kinds;
  std::unique_ptr<Ken> ken;

  void SetUp() override {
    kinds.push_back(std::make_unique<index::views::ViewKind>(pool));
    index::declare_builds(queue, *store, kinds);
    ken = std::make_unique<Ken>(*store, catalog, queue, kinds, clock);
    store->run([&](kv::Transaction& tx) { catalog.create(tx, "db"); });
  }
  void put(std::string_view json) {
    std::vector documents{docs::parse_document(json::compact(json))};
    EXPECT_FALSE(docs::bulk_edit(*store, catalog, "db", documents, rng).front().error);
  }
  std::vector<jobs::Job> all_jobs() {
    return store->run([&](kv::Transaction& tx) { return queue.list(tx, "views", std::nullopt, "", 100); });
  }
  void wait_for_jobs(std::size_t count) {
    for (int i = 0; i < 60'000 && all_jobs().size() != count; ++i) clock.sleep(std::chrono::milliseconds(1));
    EXPECT_EQ(all_jobs().size(), count);
  }
};

constexpr std::string_view kDesign =
    R"({"_id":"_design/a","views":{"v":{"map":"function(doc) { emit(1); }"}}})";

TEST_F(KenTest, AsksForEachIndexOnce) {
  put(kDesign);
  put(R"({"_id":"_design/same","views":{"v":{"map":"function(doc) { emit(1); }"}}})");
  put(R"({"_id":"_design/other","views":{"v":{"map":"function(doc) { emit(2); }"}}})");
  put(R"({"_id":"_design/none","filters":{}})");
  ken->update("db");
  ken->update("db");
  EXPECT_EQ(all_jobs().size(), 2u);
}

TEST_F(KenTest, AutoupdateSwitchesItOff) {
  put(R"({"_id":"_design/a","autoupdate":false,"views":{"v":{"map":"function(doc) { emit(1); }"}}})");
  put(R"({"_id":"_design/b","autoupdate":{"views":false},"views":{"v":{"map":"function(doc) { emit(2); }"}}})");
  ken->update("db");
  EXPECT_EQ(all_jobs().size(), 0u);
  put(R"({"_id":"_design/c","autoupdate":{"indexes":false},"views":{"v":{"map":"function(doc) { emit(3); }"}}})");
  ken->update("db");
  EXPECT_EQ(all_jobs().size(), 1u);
}

TEST_F(KenTest, AMalformedDesignDocumentHurtsNoOther) {
  put(kDesign);
  put(R"({"_id":"_design/bad","views":"x"})");
  ken->update("db");
  EXPECT_EQ(all_jobs().size(), 1u);
}

TEST_F(KenTest, NoticesChangesAndWhatChangedBeforeItStarted) {
  put(kDesign);
  ken->start();
  wait_for_jobs(1);
  put(R"({"_id":"_design/b","views":{"v":{"map":"function(doc) { emit(2); }"}}})");
  wait_for_jobs(2);
}

TEST_F(KenTest, ADeletedDatabasesJobsAreRemovedAlsoThoseThatRun) {
  put(kDesign);
  ken->start();
  wait_for_jobs(1);
  const std::vector<std::string> types{"views"};
  const auto job =
      store->run([&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, {}).jobs.at(0); });
  store->run([&](kv::Transaction& tx) { catalog.remove(tx, "db"); });
  wait_for_jobs(0);
  EXPECT_THROW(store->run([&](kv::Transaction& tx) { jobs::update(queue, tx, job.attempt()); }), Error);
}

TEST_F(KenTest, JobsThatSomebodyElseMadeUpHurtNoDatabase) {
  put(kDesign);
  ken->update("db");
  store->run([&](kv::Transaction& tx) { queue.add(tx, "views", "made up", "{}"); });
  store->run([&](kv::Transaction& tx) { catalog.remove(tx, "db"); });
  ken->update("db");
  ASSERT_EQ(all_jobs().size(), 1u);
  EXPECT_EQ(all_jobs().front().id, "made up");
}

TEST_F(KenTest, AChangeDoesNotBringAFailedBuildForward) {
  put(kDesign);
  ken->update("db");
  const std::vector<std::string> types{"views"};
  const auto job =
      store->run([&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, {}).jobs.at(0); });
  store->run([&](kv::Transaction& tx) { jobs::fail(queue, tx, job.attempt(), "no"); });
  const auto before = all_jobs().at(0);
  EXPECT_GT(before.due_at, before.started_at);
  put("{}");
  ken->update("db");
  EXPECT_EQ(all_jobs().at(0).due_at, before.due_at);
}

TEST_F(KenTest, ADatabaseThatCannotBeReadDelaysNoOtherAndIsTriedAgain) {
  ManualClock manual;
  Ken patient(*store, catalog, queue, kinds, manual);
  put(kDesign);
  std::string body;
  store->run([&](kv::Transaction& tx) {
    catalog.create(tx, "other");
    // The design document's body is lost, and comes back later.
    const auto room = kv::below(catalog.open(tx, "db").keys().room(docs::Room::body));
    const auto rows = tx.get_range(room).rows;
    ASSERT_EQ(rows.size(), 1u);
    body = rows.front().value;
    tx.clear(rows.front().key);
  });
  std::string key;
  store->run([&](kv::Transaction& tx) {
    const auto db = catalog.open(tx, "db");
    const auto tree = docs::read_tree(tx, db, "_design/a");
    key = db.keys().body(tree.front().sequence, 0);
  });
  patient.start();
  EXPECT_THROW(patient.update("db"), Error);
  // The first look at all takes until now; then only the time for gathering passes.
  std::vector documents{docs::parse_document(json::compact(kDesign))};
  EXPECT_FALSE(docs::bulk_edit(*store, catalog, "other", documents, rng).front().error);
  for (int i = 0; i < 60'000 && all_jobs().empty(); ++i) {
    if (i < 40) manual.advance(std::chrono::milliseconds(50));
    clock.sleep(std::chrono::milliseconds(1));
  }
  ASSERT_EQ(all_jobs().size(), 1u);
  EXPECT_EQ(index::database_of_build(all_jobs().front().id), "other");

  store->run([&](kv::Transaction& tx) { tx.set(key, body); });
  for (int i = 0; i < 60'000 && all_jobs().size() < 2; ++i) {
    manual.advance(std::chrono::milliseconds(100));
    clock.sleep(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(all_jobs().size(), 2u);
}

}  // namespace
}  // namespace divan::ken
