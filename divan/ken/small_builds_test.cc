// Builds that ken does itself, without a job: of triggers.
#include <thread>

#include "divan/docs/purge.h"
#include "divan/index/builder.h"
#include "divan/index/triggers/trigger_kind.h"
#include "divan/ken/testing.h"

namespace divan::ken {
namespace {

constexpr std::string_view kTrigger = R"({"_id":"_design/t","triggers":{"t":{"job":{"type":"mail"}}}})";

struct SmallBuildsTest : KenTest {
  void SetUp() override {
    KenTest::SetUp();
    kinds = {std::make_shared<index::triggers::TriggerKind>(index::triggers::Jobs{queue}, pool)};
    index::declare_builds(queue, *store, kinds);
    store->run([&](kv::Transaction& tx) { queue.set_type(tx, "mail", {}); });
    ken = std::make_unique<Ken>(*store, catalog, queue, kinds, clock, rng, config, KenOptions{.gather = {}});
    put(kTrigger);
    begin();
  }
  // What the first build of the trigger does.
  void begin(std::string_view name = "db") {
    store->run([&](kv::Transaction& tx) {
      const auto database = catalog.open(tx, name);
      const auto index = index::indexes_of(tx, database, kinds).at(0);
      index->begin(tx, database, {database, index->signature()});
    });
  }
  std::int64_t behind() {
    return store->run([&](kv::Transaction& tx) {
      const auto database = catalog.open(tx, "db");
      const auto index = index::indexes_of(tx, database, kinds).at(0);
      const index::IndexKeys keys(database, index->signature());
      return docs::count_index_changes(tx, database, index::read_sequence(tx, keys), 1000);
    });
  }
  std::size_t jobs_of(std::string_view type) {
    return store->run(
        [&](kv::Transaction& tx) { return list_jobs(queue, tx, type, {.limit = 1000}).jobs.size(); });
  }
  // A scan, without time that passes.
  void scan_now() {
    ken->add("db");
    while (ken->step()) {}
  }
};

TEST_F(SmallBuildsTest, FewChangesNeedNoJob) {
  put_documents(100);
  scan_now();
  EXPECT_EQ(behind(), 0);
  EXPECT_EQ(jobs_of("mail"), 100u);
  EXPECT_EQ(jobs_of("triggers"), 0u);
  EXPECT_TRUE(ken->status().active.empty());
  clock.advance(milliseconds(5));
  put(R"({"_id":"a"})");
  scan_now();
  EXPECT_EQ(jobs_of("mail"), 101u);
  EXPECT_EQ(jobs_of("triggers"), 0u);
}

TEST_F(SmallBuildsTest, ManyChangesNeedAJob) {
  put_documents(101);
  scan_now();
  EXPECT_EQ(behind(), 101);
  EXPECT_EQ(jobs_of("triggers"), 1u);
  EXPECT_EQ(ken->status().active.size(), 1u);
}

TEST_F(SmallBuildsTest, LargeDocumentsNeedAJob) {
  put(fmt::format(R"({{"_id":"a","text":"{}"}})", std::string(1'100'000, 'x')));
  put(R"({"_id":"b"})");
  scan_now();
  EXPECT_EQ(behind(), 2);
  EXPECT_EQ(jobs_of("triggers"), 1u);
}

// A builder goes on until there are no more changes.
TEST_F(SmallBuildsTest, ChangesAllTheTimeNeedAJob) {
  put(R"({"_id":"a"})");
  scan_now();
  EXPECT_EQ(jobs_of("triggers"), 0u);
  clock.advance(milliseconds(4));
  put(R"({"_id":"b"})");
  scan_now();
  EXPECT_EQ(jobs_of("mail"), 1u);
  EXPECT_EQ(jobs_of("triggers"), 1u);
}

// So that one run is enough for a stream of changes.
TEST_F(SmallBuildsTest, AJobWaitsForMoreChanges) {
  workers::Monitor monitor{*store, registry, clock, rng};
  index::Builder builder{
      *store, catalog, queue, monitor, kinds, clock, {.wait_for_changes = milliseconds(20)}};
  builder.start("b");
  put_documents(101);
  scan_now();
  const auto wait_for_jobs = [&](std::size_t count) {
    while (jobs_of("mail") < count) std::this_thread::yield();
  };
  wait_for_jobs(101);
  const auto job = [&] {
    return store->run([&](kv::Transaction& tx) { return list_jobs(queue, tx, "triggers", {}).jobs.at(0); });
  };
  // For more than a second, after which a build that is never up to date counts as large.
  for (std::size_t i = 1; i <= 100; ++i) {
    put("{}");
    wait_for_jobs(101 + i);
    EXPECT_EQ(job().state, jobs::State::running);
    clock.advance(milliseconds(15));
  }
  EXPECT_EQ(job().attempt, 1);
  while (job().state == jobs::State::running) {
    clock.advance(milliseconds(20));
    std::this_thread::yield();
  }
  EXPECT_EQ(job().state, jobs::State::finished);
}

TEST_F(SmallBuildsTest, WhatASmallBuildCannotDoIsDoneByAJob) {
  store->run([&](kv::Transaction& tx) { queue.remove_type(tx, "mail", true); });
  put(R"({"_id":"a"})");
  scan_now();
  EXPECT_EQ(behind(), 1);
  EXPECT_EQ(jobs_of("triggers"), 1u);
}

// The job writes the new definition's record first.
TEST_F(SmallBuildsTest, AChangedDefinitionNeedsAJob) {
  put(R"({"_id":"_design/t2","triggers":{"t":{"job":{"type":"mail"}}}})");
  put(R"({"_id":"a"})");
  scan_now();
  EXPECT_EQ(jobs_of("mail"), 1u);      // of the trigger that was built
  EXPECT_EQ(jobs_of("triggers"), 1u);  // for the one that was not
}

TEST_F(SmallBuildsTest, WhileTheJobIsPendingOrRunningNothingIsBuilt) {
  put_documents(101);
  scan_now();
  const std::vector<std::string> types{"triggers"};
  for (const bool runs : {false, true}) {
    if (runs) store->run([&](kv::Transaction& tx) { jobs::accept(queue, tx, types, {.limit = 1}); });
    clock.advance(seconds(1));
    put(fmt::format(R"({{"_id":"{}"}})", runs));
    scan_now();
    EXPECT_EQ(jobs_of("mail"), 0u);
  }
}

TEST_F(SmallBuildsTest, FailuresAreShown) {
  create("other");
  put(R"({"_id":"_design/f","triggers":{"f":{"job":{"type":"mail","data":{"to":"{email}"}}}}})", "other");
  begin("other");
  put(R"({"_id":"a"})", "other");
  ken->add("other");
  while (ken->step()) {}
  EXPECT_EQ(jobs_of("triggers"), 0u);
  ASSERT_EQ(ken->status().left_out.size(), 1u);
  EXPECT_EQ(ken->status().left_out[0].design_document, "_design/f");
}

}  // namespace
}  // namespace divan::ken
