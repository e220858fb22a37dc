// The number of round trips to a remote store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "divan/jobs/acceptor.h"
#include "divan/kv/remote_testing.h"

namespace divan::jobs {
namespace {

// Runs on a store that counts round trips, and on a cluster if there is one.
class JobRoundTrips : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && !kv::fdb::test_cluster_file()) GTEST_SKIP() << kv::fdb::kNoTestCluster;
    counted.emplace(GetParam(), clock);
    acceptor.emplace(queue, store(), clock);
    store().run([&](kv::Transaction& tx) {
      queue.set_type(tx, "mail", {});
      registry.add(tx, "r", "w", "{}", std::chrono::seconds(60));
    });
  }

  kv::Database& store() { return **counted; }
  template <class Fn>
  std::uint64_t of(Fn&& fn) {
    return counted->round_trips_of(fn);
  }
  testing::Matcher<std::uint64_t> takes(std::uint64_t trips) const { return counted->takes(trips); }
  void add(const std::string& id) {
    store().run([&](kv::Transaction& tx) { queue.add(tx, "mail", std::string_view(id), R"({"a":1})"); });
  }
  std::vector<AcceptedJob> accept(std::size_t limit) {
    return acceptor->accept(types, {.limit = limit, .worker = workers::WorkerRef{"r", "w", {}}},
                            clock.now() + std::chrono::seconds(60));
  }

  const std::vector<std::string> types{"mail"};
  SystemClock clock;
  SeededRng rng{1};
  workers::Registry registry{rng};
  Queue queue{registry, clock, rng};
  std::optional<kv::testing::CountedStore> counted;
  std::optional<Acceptor> acceptor;
};

TEST_P(JobRoundTrips, AddingTakesTwo) {
  EXPECT_THAT(of([&] { add("one"); }), takes(2));
}

TEST_P(JobRoundTrips, AcceptingTakesTwoHoweverMany) {
  add("one");
  EXPECT_THAT(of([&] { EXPECT_EQ(accept(1).size(), 1u); }), takes(2));
  for (int i = 0; i < 20; ++i) add(std::to_string(i));
  EXPECT_THAT(of([&] { EXPECT_EQ(accept(20).size(), 20u); }), takes(2));
}

TEST_P(JobRoundTrips, FinishingTakesTwo) {
  add("one");
  const auto job = accept(1).at(0);
  EXPECT_THAT(of([&] { store().run([&](kv::Transaction& tx) { finish(queue, tx, job.attempt()); }); }),
              takes(2));
}

INSTANTIATE_TEST_SUITE_P(Stores, JobRoundTrips, testing::Bool(),
                         [](const auto& one) { return one.param ? "fdb" : "counted"; });

}  // namespace
}  // namespace divan::jobs
