// Builds whose map functions do not end.
#include <fmt/core.h>

#include <future>
#include <thread>

#include "divan/index/failures.h"
#include "divan/index/views/views_testing.h"
#include "divan/jobs/listing.h"

namespace divan::index::views {
namespace {

struct Looping : testing::ViewsFixture {
  static constexpr const char* kLoop =
      R"({"v":{"map":"function(doc) { if (doc.slow) while (true); emit(1); }"}})";

  void SetUp() override {
    testing::ViewsFixture::SetUp();
    pool.configure({.processes = 2, .invocation = std::chrono::milliseconds(20)});
  }
  std::optional<BuildFailures> failures() {
    return store->run([&](kv::Transaction& tx) {
      return read_failures(tx, IndexKeys(catalog.open(tx, "db"), index()->signature()));
    });
  }
  jobs::State state() {
    return store->run(
        [&](kv::Transaction& tx) { return list_jobs(queue, tx, "views", {.limit = 10}).jobs.at(0).state; });
  }
};

TEST_F(Looping, FunctionsThatTimedOutAreNotRunAgainAtTheNextAttempt) {
  put_design(kLoop);
  std::string revision;
  for (int i = 0; i < 3; ++i) revision = put(fmt::format(R"({{"_id":"{}","slow":true}})", i));
  build();
  ASSERT_TRUE(failures());
  EXPECT_EQ(failures()->count, 1);
  EXPECT_TRUE(failures()->by_function);
  const auto first = pool.stats();
  build();
  EXPECT_EQ(state(), jobs::State::failed);
  EXPECT_EQ(failures()->count, 2);
  EXPECT_EQ(pool.stats().batches, first.batches);  // no function ran
  // A document that has changed is mapped again.
  put(fmt::format(R"({{"_id":"2","_rev":"{}"}})", revision));
  build();
  EXPECT_EQ(state(), jobs::State::finished);
  EXPECT_FALSE(failures());
}

TEST_F(Looping, ALongerTimeoutIsTried) {
  put_design(kLoop);
  for (int i = 0; i < 3; ++i) put(fmt::format(R"({{"_id":"{}","slow":true}})", i));
  build();
  const auto first = pool.stats();
  pool.configure({.processes = 2, .invocation = std::chrono::milliseconds(30)});
  build();
  EXPECT_GT(pool.stats().batches, first.batches);
}

TEST_F(Looping, TheBuildsOfADatabaseEndWithIt) {
  pool.configure({.processes = 2, .invocation = std::chrono::hours(1)});
  put_design(kLoop);
  put(R"({"_id":"a","slow":true})");
  request();
  const auto jobs = accept();
  auto building = std::async(std::launch::async, [&] { builder->run(jobs.at(0)); });
  while (pool.stats().busy == 0) std::this_thread::yield();
  EXPECT_EQ(builder->running_builds().at(0).database, "db");
  store->run([&](kv::Transaction& tx) { catalog.remove(tx, "db"); });
  building.get();
  EXPECT_TRUE(builder->running_builds().empty());
  EXPECT_EQ(state(), jobs::State::finished);
}

// For example after an event of an earlier database of the same name.
TEST_F(Looping, ABuildThatWasStoppedAlthoughItsDatabaseExistsIsReleased) {
  pool.configure({.processes = 2, .invocation = std::chrono::hours(1)});
  put_design(kLoop);
  put(R"({"_id":"a","slow":true})");
  request();
  const auto jobs = accept();
  auto building = std::async(std::launch::async, [&] { builder->run(jobs.at(0)); });
  while (pool.stats().busy == 0) std::this_thread::yield();
  events::publish_database_event(bus, "db", events::DatabaseEvent::deleted, "");
  building.get();
  EXPECT_EQ(state(), jobs::State::pending);
  EXPECT_FALSE(failures());
}

TEST_F(Looping, ABuildOfMoreThanAThousandChangesIsNotSmall) {
  builder =
      std::make_unique<Builder>(*store, catalog, queue, monitor, kinds, clock, BuilderOptions{.threads = 1});
  pool.configure({.processes = 2, .invocation = std::chrono::hours(1)});
  put_design(kLoop);
  put(R"({"_id":"a","slow":true})");
  store->run([&](kv::Transaction& tx) {
    request_build(queue, tx, catalog.open(tx, "db"), *index(), kBuildPriority, nullptr);
  });
  const auto large = accept();
  auto building = std::async(std::launch::async, [&] { builder->run(large.at(0)); });
  while (pool.stats().busy == 0) std::this_thread::yield();
  for (const int documents : {1000, 1001}) {
    const std::string name = fmt::format("other{}", documents);
    std::vector<docs::IncomingDocument> some{
        docs::parse_document(R"({"_id":"_design/d","views":{"v":{"map":"function(doc) { emit(1); }"}}})")};
    while (std::ssize(some) < documents) some.push_back(docs::parse_document("{}"));
    store->run([&](kv::Transaction& tx) { catalog.create(tx, name); });
    docs::bulk_edit(*store, catalog, name, some, rng);
    store->run([&](kv::Transaction& tx) {
      const auto database = catalog.open(tx, name);
      request_build(queue, tx, database, *indexes_of(tx, database, kinds).at(0), kQueryPriority, nullptr);
    });
    const auto job = accept();
    const auto written = [&] {
      return store->run([&](kv::Transaction& tx) {
        const auto database = catalog.open(tx, name);
        return read_sequence(tx, IndexKeys(database, signature_of(job.at(0)))) != kv::Versionstamp();
      });
    };
    builder->run(job.at(0));
    EXPECT_EQ(written(), documents == 1000) << documents;
  }
  store->run([&](kv::Transaction& tx) { catalog.remove(tx, "db"); });
  building.get();
}

TEST_F(Looping, ASlowSmallBuildIsReleasedWhileLargeOnesHoldAllSlots) {
  builder = std::make_unique<Builder>(*store, catalog, queue, monitor, kinds, clock,
                                      BuilderOptions{.threads = 1, .batch_documents = 7});
  pool.configure({.processes = 2, .invocation = std::chrono::hours(1)});
  put_design(kLoop);
  put(R"({"_id":"a","slow":true})");
  store->run([&](kv::Transaction& tx) {
    catalog.create(tx, "other");
    const auto database = catalog.open(tx, "db");
    request_build(queue, tx, database, *index(), kBuildPriority, nullptr);
  });
  const auto large = accept();
  auto building = std::async(std::launch::async, [&] { builder->run(large.at(0)); });
  while (pool.stats().busy == 0) std::this_thread::yield();
  // The same in another database, for a query.
  std::vector documents{
      docs::parse_document(json::compact(R"({"_id":"_design/d","views":)" + std::string(kLoop) + "}")),
      docs::parse_document(R"({"_id":"a","slow":true})")};
  docs::bulk_edit(*store, catalog, "other", documents, rng);
  store->run([&](kv::Transaction& tx) {
    const auto database = catalog.open(tx, "other");
    request_build(queue, tx, database, *indexes_of(tx, database, kinds).at(0), kQueryPriority, nullptr);
  });
  const auto small = accept();
  builder->run(small.at(0));
  EXPECT_EQ(queue_state(small.at(0).job.id), jobs::State::pending);
  for (const char* name : {"db", "other"}) store->run([&](kv::Transaction& tx) { catalog.remove(tx, name); });
  building.get();
}

}  // namespace
}  // namespace divan::index::views
