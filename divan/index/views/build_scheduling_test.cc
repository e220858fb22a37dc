// Builds that yield to others, and small builds.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <future>

#include "divan/base/json.h"
#include "divan/docs/reader.h"
#include "divan/docs/writer.h"
#include "divan/index/builder.h"
#include "divan/index/views/view_kind.h"
#include "divan/jobs/listing.h"
#include "divan/js/test_support.h"
#include "divan/kv/embedded/temporary_store.h"

namespace divan::index::views {
namespace {

using std::chrono::milliseconds;

// A database with an index that takes ten batches, and databases with indexes of a few documents. The builder
// has no threads: it runs on the test's own.
struct BuildScheduling : testing::Test {
  SystemClock real;
  ManualClock clock;
  kv::embedded::TemporaryStore store;
  events::Bus bus;
  SeededRng rng{1};
  docs::Catalog catalog{bus, clock};
  workers::Registry registry{rng};
  jobs::Queue queue{registry, clock, rng};
  workers::Monitor monitor{*store, registry, clock, rng};
  js::Pool pool{{.binary = DIVAN_JS_BINARY, .processes = 1}, real};
  Kinds kinds;
  std::unique_ptr<Builder> builder;

  void SetUp() override {
    kinds.push_back(std::make_unique<ViewKind>(pool));
    declare_builds(queue, *store, kinds);
    builder = std::make_unique<Builder>(
        *store, catalog, queue, monitor, kinds, clock,
        BuilderOptions{.batch_documents = 10, .time_slice = std::chrono::seconds(10)});
    create("large", 100);
    create("small", 3);
  }

  void create(const std::string& name, int documents) {
    store->run([&](kv::Transaction& tx) { catalog.create(tx, name); });
    std::vector<docs::IncomingDocument> all;
    // A different function for each, since the pool remembers how long functions take.
    all.push_back(docs::parse_document(json::compact(fmt::format(
        R"({{"_id":"_design/d","views":{{"v":{{"map":"function(doc) {{ emit(1, '{}'); }}"}}}}}})", name))));
    for (int i = 1; i < documents; ++i) all.push_back(docs::parse_document("{}"));
    docs::bulk_edit(*store, catalog, name, all, rng);
  }
  void request(const std::string& name, std::int64_t priority) {
    store->run([&](kv::Transaction& tx) {
      const auto database = catalog.open(tx, name);
      request_build(queue, tx, database, *indexes_of(tx, database, kinds).at(0), priority, nullptr);
    });
  }
  // Runs the next job; returns the name of its database.
  std::string run_next() {
    const std::vector<std::string> types{"views"};
    const auto jobs =
        store->run([&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, {}).jobs; });
    if (jobs.empty()) return "";
    builder->run(jobs.front());
    return std::string(database_of_build(jobs.front().job.id));
  }
  bool is_built(const std::string& name) {
    return store->run([&](kv::Transaction& tx) {
      const auto database = catalog.open(tx, name);
      const auto index = indexes_of(tx, database, kinds).at(0);
      return read_sequence(tx, IndexKeys(database, index->signature())) == docs::last_sequence(tx, database);
    });
  }
  bool has_begun(const std::string& name) {
    return store->run([&](kv::Transaction& tx) {
      const auto database = catalog.open(tx, name);
      const auto index = indexes_of(tx, database, kinds).at(0);
      return read_sequence(tx, IndexKeys(database, index->signature())) != kv::Versionstamp();
    });
  }
  // Calls a function when the first batch of the large index has been written.
  events::Subscription when_begun(std::function<void()> then) {
    return bus.subscribe(events::database_channel("large"), {.notify = std::move(then)});
  }
};

TEST_F(BuildScheduling, ABuildYieldsToAMoreUrgentOne) {
  request("large", kBuildPriority);
  const auto begun = when_begun([&] { request("small", kCatchUpPriority); });
  EXPECT_EQ(run_next(), "large");
  EXPECT_TRUE(has_begun("large"));
  EXPECT_FALSE(is_built("large"));
  EXPECT_EQ(run_next(), "small");
  EXPECT_TRUE(is_built("small"));
  EXPECT_EQ(run_next(), "large");
  EXPECT_TRUE(is_built("large"));
  EXPECT_EQ(run_next(), "");
}

TEST_F(BuildScheduling, ABuildDoesNotYieldToAnEquallyUrgentOneBeforeItsTimeSliceEnds) {
  request("large", kCatchUpPriority);
  const auto begun = when_begun([&] { request("small", kCatchUpPriority); });
  EXPECT_EQ(run_next(), "large");
  EXPECT_TRUE(is_built("large"));
}

TEST_F(BuildScheduling, ABuildWhoseTimeSliceEndedYieldsToEquallyUrgentOnes) {
  request("large", kCatchUpPriority);
  const auto begun = when_begun([&] {
    request("small", kCatchUpPriority);
    clock.advance(std::chrono::seconds(10));
  });
  EXPECT_EQ(run_next(), "large");
  EXPECT_FALSE(is_built("large"));
  EXPECT_EQ(run_next(), "small");
  EXPECT_EQ(run_next(), "large");
  EXPECT_TRUE(is_built("large"));
}

TEST_F(BuildScheduling, ABuildDoesNotYieldToALessUrgentOne) {
  request("large", kCatchUpPriority);
  const auto begun = when_begun([&] {
    request("small", kBuildPriority);
    clock.advance(std::chrono::seconds(10));
  });
  EXPECT_EQ(run_next(), "large");
  EXPECT_TRUE(is_built("large"));
}

TEST_F(BuildScheduling, APendingJobBecomesMoreUrgentButNeverLess) {
  request("large", kBuildPriority);
  request("large", kQueryPriority);
  request("large", kCatchUpPriority);
  const auto job = store->run(
      [&](kv::Transaction& tx) { return list_jobs(queue, tx, "views", {.limit = 10}).jobs.at(0); });
  EXPECT_EQ(job.priority, kQueryPriority);
}

TEST_F(BuildScheduling, RequestingAPendingOrRunningBuildAgainWritesNothing) {
  const auto writes = [&](std::int64_t priority) {
    return store->run([&](kv::Transaction& tx) {
      const auto database = catalog.open(tx, "large");
      request_build(queue, tx, database, *indexes_of(tx, database, kinds).at(0), priority, nullptr);
      return !tx.read_only();
    });
  };
  EXPECT_TRUE(writes(kCatchUpPriority));
  EXPECT_FALSE(writes(kCatchUpPriority));
  EXPECT_FALSE(writes(kBuildPriority));
  EXPECT_TRUE(writes(kQueryPriority));
  bool wrote = true;
  const auto begun = when_begun([&] { wrote = writes(kQueryPriority); });
  EXPECT_EQ(run_next(), "large");
  EXPECT_FALSE(wrote);
  EXPECT_TRUE(writes(kBuildPriority));
}

// The pool reserves processes for calls that a client waits for.
TEST_F(BuildScheduling, FunctionsAreUrgentIfAQueryWaitsForTheirIndex) {
  for (const auto& [name, priority, purpose] : {std::tuple("small", kQueryPriority, js::Purpose::urgent),
                                                std::tuple("large", kCatchUpPriority, js::Purpose::trial)}) {
    // Any other call, so that a process exists. It is held until the test has observed which call has it, and
    // so is any other child process, which an earlier test may have left.
    const std::vector<std::string_view> documents = {"{}"};
    pool.map(js::program_of({js::kEmitN}), documents, {.urgent = true, .waited_for = true});
    const auto processes = js::children();
    for (const pid_t process : processes) kill(process, SIGSTOP);
    request(name, priority);
    auto building = std::async(std::launch::async, [&] { return run_next(); });
    std::vector<js::RunningCall> calls;
    EXPECT_TRUE(js::eventually([&] { return !(calls = pool.running()).empty(); }));
    for (const pid_t process : processes) kill(process, SIGCONT);
    EXPECT_EQ(building.get(), name);
    EXPECT_TRUE(is_built(name));
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(calls[0].owner.database, name);
    EXPECT_EQ(calls[0].purpose, purpose) << name;
  }
}

TEST_F(BuildScheduling, ABuildLongerThanASecondIsNoLongerSmall) {
  for (const auto& [name, time, stays_small] :
       {std::tuple("large", milliseconds(1000), true), std::tuple("other", milliseconds(1001), false)}) {
    if (name == std::string_view("other")) create(name, 100);
    request(name, kQueryPriority);
    std::vector<bool> small;  // when each batch is written
    events::Subscription written;
    written = bus.subscribe(events::database_channel(name), {.notify = [&, time = time] {
                              while (written.try_next()) {}
                              if (small.empty()) clock.advance(time);
                              small.push_back(builder->running_builds().at(0).small);
                            }});
    EXPECT_EQ(run_next(), name);
    EXPECT_TRUE(is_built(name));
    ASSERT_GT(small.size(), 2u);
    EXPECT_TRUE(small.front());
    EXPECT_EQ(small.back(), stays_small) << name;
  }
}

}  // namespace
}  // namespace divan::index::views
