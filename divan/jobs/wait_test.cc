#include "divan/jobs/wait.h"

#include <future>

#include "divan/jobs/attempts.h"
#include "divan/jobs/testing.h"
#include "divan/kv/counting_testing.h"
#include "divan/kv/unwatched_testing.h"

namespace divan::jobs {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;

struct JobWaits : QueueTest {
  const std::vector<std::string> types{"t"};
  int woken = 0;

  void SetUp() override {
    in_tx([&](kv::Transaction& tx) {
      queue.set_type(tx, "t", {});
      for (const char* id : {"a", "b", "c"}) queue.add(tx, "t", id, "{}");
    });
  }
  std::vector<std::pair<std::string, std::string>> names(std::initializer_list<const char*> ids) {
    std::vector<std::pair<std::string, std::string>> names;
    for (const char* id : ids) names.emplace_back("t", id);
    return names;
  }
  std::size_t read(Wait& wait) {
    return wait.read([this] { ++woken; });
  }
  static std::vector<bool> reached(const Wait& wait) {
    std::vector<bool> reached;
    for (const auto& job : wait.jobs()) reached.push_back(job.reached);
    return reached;
  }
  void cancel(const char* id) {
    in_tx([&](kv::Transaction& tx) { queue.cancel(tx, "t", id); });
  }
};

TEST_F(JobWaits, ReturnWhichJobsHaveEnded) {
  Wait wait(queue, *store, names({"c", "a", "b"}));
  EXPECT_EQ(read(wait), 0u);
  cancel("a");
  EXPECT_GE(woken, 1);
  EXPECT_EQ(read(wait), 1u);
  EXPECT_THAT(reached(wait), ElementsAre(false, true, false));
  EXPECT_EQ(wait.jobs()[1].job->state, State::cancelled);
  const auto jobs = in_tx([&](kv::Transaction& tx) { return accept(queue, tx, types, {.limit = 2}).jobs; });
  EXPECT_EQ(read(wait), 1u) << "a running job has not ended";
  EXPECT_EQ(wait.jobs()[0].job->state, State::running);
  for (const auto& job : jobs) in_tx([&](kv::Transaction& tx) { finish(queue, tx, job.attempt()); });
  EXPECT_EQ(read(wait), 3u);
}

TEST_F(JobWaits, AJobThatHasReachedAStateIsNotReadAgain) {
  Wait wait(queue, *store, names({"a"}));
  cancel("a");
  EXPECT_EQ(read(wait), 1u);
  in_tx([&](kv::Transaction& tx) { queue.resubmit(tx, "t", "a"); });
  EXPECT_EQ(read(wait), 1u);
}

TEST_F(JobWaits, OtherStatesCanBeWaitedFor) {
  Wait wait(queue, *store, names({"a", "b"}), {State::running});
  EXPECT_EQ(read(wait), 0u);
  in_tx([&](kv::Transaction& tx) { accept(queue, tx, types, {}); });
  EXPECT_EQ(read(wait), 1u);
}

TEST_F(JobWaits, AJobThatIsNotThereIsNotWaitedFor) {
  Wait wait(queue, *store, names({"nothing", "a"}));
  EXPECT_EQ(read(wait), 1u);
  EXPECT_FALSE(wait.jobs()[0].job);
  in_tx([&](kv::Transaction& tx) { queue.remove(tx, "t", "a"); });
  EXPECT_GE(woken, 1);
  EXPECT_EQ(read(wait), 2u);
}

TEST_F(JobWaits, OnlyJobsThatHaveChangedAreReadAgain) {
  kv::testing::CountingStore counting(*store);
  Wait wait(queue, counting, names({"a", "b", "c"}));
  read(wait);
  counting.begun = 0;
  read(wait);
  EXPECT_EQ(counting.begun, 0);
  cancel("b");
  counting.rows_read = 0;
  read(wait);
  EXPECT_EQ(counting.begun, 1);
  EXPECT_EQ(counting.rows_read, 1);
}

// A call that waits is woken by the watches that a call before it has set.
TEST_F(JobWaits, EachCallHasItsOwnCallback) {
  Wait wait(queue, *store, names({"a"}));
  int first = 0, second = 0;
  wait.read([&] { ++first; });
  wait.read([&] { ++second; });
  cancel("a");
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 1);
}

TEST_F(JobWaits, BlockUntilEnoughHaveEnded) {
  Wait wait(queue, *store, names({"a", "b", "c"}));
  EXPECT_EQ(wait.wait(clock, 1, clock.now()), 0u);
  auto waiting = std::async(std::launch::async, [&] { return wait.wait(clock, 2, MonotonicTime::max()); });
  cancel("a");
  cancel("b");
  ASSERT_EQ(waiting.wait_for(minutes(1)), std::future_status::ready);
  EXPECT_EQ(waiting.get(), 2u);
}

TEST_F(JobWaits, EndAtTheirDeadline) {
  Wait wait(queue, *store, names({"a"}));
  auto waiting =
      std::async(std::launch::async, [&] { return wait.wait(clock, 1, clock.now() + seconds(10)); });
  while (waiting.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready)
    clock.advance(seconds(1));
  EXPECT_EQ(waiting.get(), 0u);
}

TEST_F(JobWaits, WithoutWatchesTheJobsArePolled) {
  kv::testing::UnwatchedStore unwatched(*store);
  Wait wait(queue, unwatched, names({"a"}));
  EXPECT_EQ(read(wait), 0u);
  EXPECT_TRUE(wait.must_poll());
  cancel("a");
  EXPECT_EQ(read(wait), 1u);
  EXPECT_FALSE(wait.must_poll());
  Wait other(queue, unwatched, names({"b"}));
  auto waiting = std::async(std::launch::async, [&] { return other.wait(clock, 1, MonotonicTime::max()); });
  cancel("b");
  while (waiting.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready)
    clock.advance(seconds(1));
  EXPECT_EQ(waiting.get(), 1u);
}

TEST_F(JobWaits, AreLimited) {
  EXPECT_THROW(Wait(queue, *store, {}), Error);
  EXPECT_THROW(Wait(queue, *store, names({"a"}), {}), Error);
  std::vector<std::pair<std::string, std::string>> many(kMaxAwaitedJobs, {"t", "a"});
  EXPECT_NO_THROW(Wait(queue, *store, many));
  many.emplace_back("t", "a");
  EXPECT_THROW(Wait(queue, *store, many), Error);
}

}  // namespace
}  // namespace divan::jobs
