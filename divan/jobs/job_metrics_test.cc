#include "divan/jobs/job_metrics.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "divan/jobs/attempts.h"
#include "divan/jobs/queue.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/lossy_testing.h"

namespace divan::jobs {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct MetricsAndEvents : testing::Test {
  ManualClock clock{1'000'000};
  kv::embedded::TemporaryStore store{&clock};
  SeededRng rng{1};
  workers::Registry registry{rng};
  events::Bus bus;
  Metrics metrics;
  Queue queue{registry, clock, rng};
  events::Subscription subscription;

  void SetUp() override {
    queue.job_metrics().measure(metrics);
    queue.job_metrics().publish(bus);
    subscription = bus.subscribe(jobs_channel());
    set_type("t", {.max_attempts = 2});
  }
  template <class Fn>
  auto in_tx(Fn&& fn) {
    return store->run(std::forward<Fn>(fn));
  }
  void set_type(const std::string& type, const TypeSettings& settings = {}) {
    in_tx([&](kv::Transaction& tx) { queue.set_type(tx, type, settings); });
  }
  void add(const std::string& id, const std::string& type = "t") {
    in_tx([&](kv::Transaction& tx) { queue.add(tx, type, id, "{}"); });
  }
  Attempt accept_one(const std::string& type = "t", const AcceptOptions& options = {}) {
    const std::vector<std::string> types{type};
    return in_tx([&](kv::Transaction& tx) { return accept(queue, tx, types, options).jobs.at(0).attempt(); });
  }
  std::vector<std::string> events() {
    std::vector<std::string> rows;
    while (const auto message = subscription.try_next())
      rows.push_back(message->event ? message->event->payload : fmt::format("lagged {}", message->lagged));
    return rows;
  }
};

TEST_F(MetricsAndEvents, EachChangeIsAnEvent) {
  add("a");
  EXPECT_THAT(events(), ElementsAre(R"({"type":"t","id":"a","state":"pending","attempt":0,"time":1000000})"));
  add("a");
  EXPECT_THAT(events(), IsEmpty());
  const auto worker = in_tx([&](kv::Transaction& tx) { return registry.add(tx, "role", "w1", "{}"); });
  const auto first = accept_one("t", {.worker = worker});
  EXPECT_THAT(
      events(),
      ElementsAre(
          R"({"type":"t","id":"a","state":"running","attempt":1,"worker":{"role":"role","id":"w1"},"time":1000000})"));
  clock.advance(milliseconds(5));
  in_tx([&](kv::Transaction& tx) { fail(queue, tx, first, "no"); });
  EXPECT_THAT(
      events(),
      ElementsAre(
          R"({"type":"t","id":"a","state":"pending","attempt":1,"outcome":"failed","worker":{"role":"role","id":"w1"},"time":1000005})"));
  clock.advance(std::chrono::seconds(1));
  const auto second = accept_one();
  in_tx([&](kv::Transaction& tx) { finish(queue, tx, second); });
  EXPECT_THAT(events(), ElementsAre(HasSubstr(R"("state":"running","attempt":2)"),
                                    HasSubstr(R"("state":"finished","attempt":2,"outcome":"finished")")));
  in_tx([&](kv::Transaction& tx) { queue.remove(tx, "t", "a"); });
  EXPECT_THAT(events(), ElementsAre(HasSubstr(R"("state":"removed")")));
}

TEST_F(MetricsAndEvents, LostReleasedAndCancelled) {
  add("a");
  const auto worker = in_tx([&](kv::Transaction& tx) { return registry.add(tx, "role", "w1", "{}"); });
  accept_one("t", {.worker = worker});
  events();
  in_tx([&](kv::Transaction& tx) { registry.remove(tx, worker); });
  EXPECT_THAT(events(), ElementsAre(HasSubstr(R"("state":"pending","attempt":1,"outcome":"lost")")));
  const auto second = accept_one();
  in_tx([&](kv::Transaction& tx) { release(queue, tx, second); });
  EXPECT_THAT(events().back(), HasSubstr(R"("outcome":"released")"));
  // A released attempt is not counted.
  const auto third = accept_one();
  in_tx([&](kv::Transaction& tx) { queue.cancel(tx, "t", "a"); });
  in_tx([&](kv::Transaction& tx) { finish(queue, tx, third); });
  EXPECT_THAT(events().back(), HasSubstr(R"("state":"cancelled","attempt":2,"outcome":"cancelled")"));
  add("b");
  in_tx([&](kv::Transaction& tx) { queue.cancel(tx, "t", "b"); });
  EXPECT_THAT(events().back(), HasSubstr(R"("id":"b","state":"cancelled","attempt":0)"));
}

TEST_F(MetricsAndEvents, ChangesThatAreNotCommittedAreNotReported) {
  const auto tx = store->begin();
  queue.add(*tx, "t", "a", "{}");
  tx->reset();
  queue.add(*tx, "t", "b", "{}");
  EXPECT_THAT(events(), IsEmpty());
  tx->commit();
  EXPECT_THAT(events(), ElementsAre(HasSubstr(R"("id":"b")")));
}

TEST_F(MetricsAndEvents, ACommitWhoseResponseIsLostIsReportedOnce) {
  using kv::testing::LossyStore;
  using enum LossyStore::Fate;
  const std::vector<std::string> types{"t"};
  LossyStore lossy(*store);
  const std::vector<std::deque<LossyStore::Fate>> all = {
      {lost_after_commit},
      {lost_before_commit},
      {lost_before_commit, answered, lost_after_commit},
      {lost_before_commit, lost_before_commit},
      {lost_before_commit, lost_before_commit, lost_after_commit},
      {late}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto lose = [&] { lossy.fates = all[i]; };
    lose();
    lossy.run([&](kv::Transaction& tx) { queue.add(tx, "t", fmt::format("j{}", i), "{}"); });
    EXPECT_THAT(events(), ElementsAre(HasSubstr(R"("state":"pending")"))) << i;
    lose();
    const auto attempt =
        lossy.run([&](kv::Transaction& tx) { return accept(queue, tx, types, {}).jobs.at(0).attempt(); });
    EXPECT_THAT(events(), ElementsAre(HasSubstr(R"("state":"running")"))) << i;
    lose();
    lossy.run([&](kv::Transaction& tx) { finish(queue, tx, attempt); });
    EXPECT_THAT(events(), ElementsAre(HasSubstr(R"("state":"finished")"))) << i;
    EXPECT_THAT(
        metrics.text(),
        HasSubstr(fmt::format("divan_job_attempts_total{{outcome=\"finished\",type=\"t\"}} {}", i + 1)));
  }
}

TEST_F(MetricsAndEvents, MetricsByType) {
  set_type("u");
  add("a");
  add("x", "u");
  clock.advance(milliseconds(200));
  const auto attempt = accept_one();
  clock.advance(milliseconds(3000));
  in_tx([&](kv::Transaction& tx) { finish(queue, tx, attempt); });
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr(R"(divan_job_wait_seconds_sum{type="t"} 0.2)"));
  EXPECT_THAT(text, HasSubstr(R"(divan_job_run_seconds_sum{type="t"} 3)"));
  EXPECT_THAT(text, HasSubstr(R"(divan_job_attempts_total{outcome="finished",type="t"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(divan_job_attempts_total{outcome="failed",type="t"} 0)"));
  EXPECT_THAT(text, Not(HasSubstr(R"(type="u")")));
}

TEST_F(MetricsAndEvents, TypesWithMetricsOfTheirOwnAreBounded) {
  for (int i = 0; i < 210; ++i) {
    const std::string type = fmt::format("type-{}", i);
    set_type(type);
    add("a", type);
    accept_one(type);
  }
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr(R"(divan_job_wait_seconds_count{type="type-199"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(divan_job_wait_seconds_count{type="_other"} 10)"));
  EXPECT_THAT(text, Not(HasSubstr(R"(type="type-200")")));
}

TEST_F(MetricsAndEvents, ASlowSubscriberLearnsHowManyEventsItMissed) {
  subscription = bus.subscribe(jobs_channel(), {.max_events = 3});
  for (int i = 0; i < 5; ++i) add(fmt::format("j{}", i));
  EXPECT_THAT(events(), ElementsAre("lagged 2", HasSubstr("j2"), HasSubstr("j3"), HasSubstr("j4")));
}

}  // namespace
}  // namespace divan::jobs
