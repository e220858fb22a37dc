// Jobs of several types that are accepted together.
#include <fmt/core.h>

#include "divan/jobs/acceptor.h"
#include "divan/jobs/testing.h"

namespace divan::jobs {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

struct SeveralTypes : QueueTest {
  const std::vector<std::string> types{"z", "a", "m"};
  void SetUp() override {
    in_tx([&](kv::Transaction& tx) {
      for (const auto& type : types) queue.set_type(tx, type, {});
    });
  }
  // Adds a job, and advances the clock by a second.
  void add(const std::string& type, const std::string& id, const Queue::AddOptions& options = {}) {
    in_tx([&](kv::Transaction& tx) { queue.add(tx, type, id, "{}", options); });
    clock.advance(seconds(1));
  }
  std::vector<std::string> accept(std::size_t limit) {
    std::vector<std::string> ids;
    const auto jobs =
        in_tx([&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, {.limit = limit}).jobs; });
    for (const auto& job : jobs) ids.push_back(job.job.id);
    return ids;
  }
};

TEST_F(SeveralTypes, AreOneQueueByPriorityThenTime) {
  add("a", "low", {.priority = 1});
  add("z", "first");
  add("m", "second");
  add("a", "third");
  add("z", "fourth");
  add("m", "early", {.scheduled_at = 5});
  add("a", "urgent", {.priority = -1});
  EXPECT_THAT(accept(1), ElementsAre("urgent"));
  EXPECT_THAT(accept(2), ElementsAre("early", "first"));
  EXPECT_THAT(accept(10), ElementsAre("second", "third", "fourth", "low"));
}

TEST_F(SeveralTypes, WithAndWithoutCursorsAreAcceptedInTheSameOrder) {
  QueueCursors cursors;
  SeededRng chance(7);
  std::vector<std::string> expected, got;
  for (int i = 0; i < 300; ++i) {
    const auto& type = types[chance.below(3)];
    add(type, fmt::format("{:03}", i), {.priority = static_cast<std::int64_t>(chance.below(4))});
    if (chance.below(3) > 0) continue;
    {
      auto tx = store->begin();
      for (const auto& job : jobs::accept(queue, *tx, types, {.limit = 1}).jobs)
        expected.push_back(job.job.id);
    }
    in_tx([&](kv::Transaction& tx) {
      AcceptRequest request{.limit = 1};
      accept_for(queue, tx, types, std::nullopt, std::span(&request, 1), &cursors);
      for (const auto& job : request.jobs) got.push_back(job.job.id);
    });
  }
  EXPECT_EQ(got, expected);
  EXPECT_GT(got.size(), 50u);
}

TEST_F(SeveralTypes, AtTheirLimitOrPausedDoNotBlockOthers) {
  in_tx([&](kv::Transaction& tx) {
    queue.set_type(tx, "a", {.max_running = 1});
    queue.set_type(tx, "m", {.paused = true});
  });
  for (const char* id : {"a1", "a2"}) add("a", id);
  add("m", "m1");
  for (const char* id : {"z1", "z2"}) add("z", id);
  EXPECT_THAT(accept(3), ElementsAre("a1", "z1", "z2"));
  EXPECT_THAT(accept(3), ElementsAre());
}

TEST_F(SeveralTypes, WakeAnAcceptorThatWaitsForAnyOfThem) {
  Acceptor acceptor(queue, *store, clock);
  for (const auto& type : types) {
    int woken = 0;
    const auto waiter = acceptor.join(types, {}, [&] { ++woken; });
    EXPECT_FALSE(acceptor.step(waiter).done);
    woken = 0;
    in_tx([&](kv::Transaction& tx) { queue.add(tx, type, "j", "{}"); });
    EXPECT_GT(woken, 0);
    const auto step = acceptor.step(waiter);
    ASSERT_TRUE(step.done);
    EXPECT_EQ(step.jobs.at(0).job.type, type);
  }
}

}  // namespace
}  // namespace divan::jobs
