// A job's position in the queue after it was added again or resubmitted.
#include "divan/jobs/attempts.h"
#include "divan/jobs/testing.h"

namespace divan::jobs {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

constexpr std::int64_t kSecond = 1000;

struct QueuePosition : QueueTest {
  QueuePosition() {
    in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "t", {.backoff_min = seconds(100)}); });
  }

  void add(std::string_view id, const Queue::AddOptions& options = {}, std::string_view data = "{}") {
    in_tx([&](kv::Transaction& tx) { queue.add(tx, "t", id, data, options); });
  }
  // Adds each at its own second.
  void add_each(std::initializer_list<std::string_view> ids) {
    for (const auto id : ids) {
      add(id);
      clock.advance(seconds(1));
    }
  }
  void resubmit(std::string_view id, std::int64_t at = 0) {
    in_tx([&](kv::Transaction& tx) { queue.resubmit(tx, "t", id, at); });
  }
  std::vector<AcceptedJob> accept(std::size_t limit) {
    const std::vector<std::string> types{"t"};
    return in_tx([&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, {.limit = limit}).jobs; });
  }
  // The jobs that are due, in the order in which they run.
  std::vector<std::string> order() {
    std::vector<std::string> ids;
    auto tx = store->begin();  // not committed
    const std::vector<std::string> types{"t"};
    for (const auto& job : jobs::accept(queue, *tx, types, {.limit = 100}).jobs) ids.push_back(job.job.id);
    return ids;
  }
  Job job(std::string_view id) {
    return in_tx([&](kv::Transaction& tx) { return queue.find(tx, "t", id).value(); });
  }
};

TEST_F(QueuePosition, IsKeptWhenItGetsOtherData) {
  add_each({"a", "b", "c"});
  add("a", {}, R"({"new":1})");
  add("b", {}, R"({"new":1})");
  EXPECT_THAT(order(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(job("a").due_at, kNow);
  EXPECT_EQ(job("a").added_at, kNow);
}

TEST_F(QueuePosition, IsKeptHoweverOftenItIsAddedAgain) {
  for (int i = 0; i < 100; ++i) {
    add("other" + std::to_string(i), {}, "{}");
    add("a", {}, std::to_string(i));
    // A client may pass the current time each time.
    add("b", {.scheduled_at = clock.wall_ms()}, std::to_string(i));
    clock.advance(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(job("a").due_at, kNow);
  EXPECT_EQ(job("b").due_at, kNow);
}

TEST_F(QueuePosition, IsThatOfItsAgeInAnotherPriority) {
  add_each({"a", "b"});
  add("c", {.priority = 1});
  clock.advance(seconds(1));
  add("a", {.priority = 1});
  EXPECT_THAT(order(), ElementsAre("b", "a", "c"));
  add("a");
  EXPECT_THAT(order(), ElementsAre("a", "b", "c"));
}

TEST_F(QueuePosition, IsKeptWithItsTimeUnlessAnotherIsGiven) {
  add("a", {.scheduled_at = kNow + 10 * kSecond});
  add("a", {}, R"({"new":1})");
  EXPECT_EQ(job("a").scheduled_at, kNow + 10 * kSecond);
  EXPECT_EQ(job("a").due_at, kNow + 10 * kSecond);
  // A later one, and an earlier one.
  for (const std::int64_t at : {20, 5}) {
    add("a", {.scheduled_at = kNow + at * kSecond});
    EXPECT_EQ(job("a").scheduled_at, kNow + at * kSecond);
    EXPECT_EQ(job("a").due_at, kNow + at * kSecond);
  }
  // One that has passed.
  add("a", {.scheduled_at = kNow - kSecond});
  EXPECT_EQ(job("a").due_at, kNow - kSecond);
}

TEST_F(QueuePosition, IsNotWrittenAgainWithTheTimeThatItHas) {
  for (const std::int64_t at : {std::int64_t{0}, kNow - kSecond, kNow + 10 * kSecond}) {
    const std::string id = std::to_string(at);
    add(id, {.scheduled_at = at});
    clock.advance(seconds(1));
    in_tx([&](kv::Transaction& tx) {
      queue.add(tx, "t", id, "{}", {.scheduled_at = at});
      queue.resubmit(tx, "t", id, at);
      EXPECT_TRUE(tx.read_only()) << at;
    });
  }
}

TEST_F(QueuePosition, IsNowIfItRunsAtOnce) {
  add("a", {.scheduled_at = kNow + 10 * kSecond});
  add_each({"b"});
  add("a", {.scheduled_at = 0});
  EXPECT_EQ(job("a").scheduled_at, 0);
  EXPECT_EQ(job("a").due_at, kNow + kSecond);
  EXPECT_THAT(order(), ElementsAre("b", "a"));
  clock.advance(seconds(1));
  add("c");
  add("b", {.scheduled_at = 0});
  resubmit("b");
  EXPECT_THAT(order(), ElementsAre("b", "a", "c"));
}

TEST_F(QueuePosition, IsKeptByAResubmitUnlessThatMovesItForwardOrGivesAFutureTime) {
  add_each({"a", "b"});
  resubmit("a");
  resubmit("a", clock.wall_ms());
  EXPECT_THAT(order(), ElementsAre("a", "b"));
  resubmit("b", kNow - kSecond);
  EXPECT_THAT(order(), ElementsAre("b", "a"));
  resubmit("b", kNow + 10 * kSecond);
  EXPECT_THAT(order(), ElementsAre("a"));
  resubmit("b");
  EXPECT_EQ(job("b").due_at, kNow + 2 * kSecond);
}

TEST_F(QueuePosition, ThatWaitsAfterAFailureIsKeptByAnAddAndEndedByAResubmit) {
  add("a");
  const auto attempt = accept(1).at(0).attempt();
  in_tx([&](kv::Transaction& tx) { fail(queue, tx, attempt, "no"); });
  const std::int64_t due_at = job("a").due_at;
  EXPECT_GT(due_at, kNow + 50 * kSecond);
  add("a", {}, R"({"new":1})");
  EXPECT_EQ(job("a").due_at, due_at);
  EXPECT_EQ(job("a").failures, 1);
  resubmit("a");
  EXPECT_EQ(job("a").due_at, kNow);
}

// A lost attempt moves its job behind those that are due, however early its time was.
TEST_F(QueuePosition, ThatWasLostIsKeptByAnAddWithItsTime) {
  add("a", {.scheduled_at = kNow - kSecond});
  accept(1);
  clock.advance(seconds(5));
  in_tx([&](kv::Transaction& tx) {
    Job lost = queue.find(tx, "t", "a").value();
    reclaim(queue, tx, lost, Outcome::lost);
  });
  EXPECT_EQ(job("a").due_at, kNow + 5 * kSecond);
  add("a", {.scheduled_at = kNow - kSecond}, R"({"new":1})");
  EXPECT_EQ(job("a").due_at, kNow + 5 * kSecond);
  EXPECT_EQ(job("a").lost, 1);
}

TEST_F(QueuePosition, ThatHasEndedIsBehindThoseThatAreDue) {
  add_each({"a"});
  const auto attempt = accept(1).at(0).attempt();
  in_tx([&](kv::Transaction& tx) { finish(queue, tx, attempt); });
  add_each({"b"});
  add("a");
  EXPECT_THAT(order(), ElementsAre("b", "a"));
  EXPECT_EQ(job("a").due_at, kNow + 2 * kSecond);
}

TEST_F(QueuePosition, ThatRunsIsTheTimeOfItsNextRun) {
  add("a");
  const auto attempt = accept(1).at(0).attempt();
  add("a", {.scheduled_at = kNow + 10 * kSecond}, "1");
  add("a", {}, "2");  // keeps the time
  EXPECT_EQ(job("a").resubmit_at, kNow + 10 * kSecond);
  resubmit("a");
  EXPECT_EQ(job("a").resubmit_at, 0);
  add_each({"b"});
  in_tx([&](kv::Transaction& tx) { finish(queue, tx, attempt); });
  EXPECT_THAT(order(), ElementsAre("b", "a"));
}

TEST_F(QueuePosition, OfAPeriodicJobIsItsTick) {
  const auto hourly = Schedule::parse("@hourly", "UTC");
  const std::int64_t tick = hourly.next_after(kNow);
  add("a", {.schedule = hourly});
  clock.advance(seconds(1));
  add("a", {.schedule = hourly}, "1");
  EXPECT_EQ(job("a").due_at, tick);
  add("a", {.schedule = Schedule::parse("@daily", "UTC")});
  EXPECT_GT(job("a").due_at, tick);
  // Without its schedule it runs at once.
  add("a");
  EXPECT_EQ(job("a").due_at, kNow + kSecond);
}

TEST_F(QueuePosition, OfAReleasedJobIsItsOwnOrTheEndOfTheDelay) {
  add_each({"a", "b"});
  const auto first = accept(1).at(0).attempt();
  in_tx([&](kv::Transaction& tx) { release(queue, tx, first); });
  EXPECT_THAT(order(), ElementsAre("a", "b"));
  const auto second = accept(1).at(0).attempt();
  in_tx([&](kv::Transaction& tx) { release(queue, tx, second, Duration(0)); });
  EXPECT_THAT(order(), ElementsAre("b", "a"));
  accept(1);
  const auto third = accept(1).at(0).attempt();
  in_tx([&](kv::Transaction& tx) { release(queue, tx, third, seconds(60)); });
  EXPECT_THAT(order(), ElementsAre());
  EXPECT_EQ(job("a").due_at, kNow + 62 * kSecond);
  EXPECT_EQ(job("a").failures, 0);
}

}  // namespace
}  // namespace divan::jobs
