#include "divan/base/thread_pool.h"

#include <gtest/gtest.h>

#include <future>

namespace divan {
namespace {

TEST(ThreadPool, RunsAllQueuedTasksBeforeItEnds) {
  std::atomic<int> ran = 0;
  {
    ThreadPool pool("test", 3, 1000);
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(pool.submit([&] { ++ran; }));
  }
  EXPECT_EQ(ran, 500);
}

TEST(ThreadPool, RejectsTasksWhenItsQueueIsFull) {
  ThreadPool pool("test", 1, 2);
  std::promise<void> started, release;
  ASSERT_TRUE(pool.submit([&] {
    started.set_value();
    release.get_future().wait();
  }));
  started.get_future().wait();
  EXPECT_TRUE(pool.submit([] {}));
  EXPECT_TRUE(pool.submit([] {}));
  EXPECT_FALSE(pool.submit([] {}));
  EXPECT_EQ(pool.queued(), 2u);
  release.set_value();
  pool.stop();
  EXPECT_FALSE(pool.submit([] {}));
}

// Each task blocks until as many tasks as there are threads have started; they are submitted from outside and
// from within tasks. A thread that is not woken blocks all of them.
TEST(ThreadPool, AllNeededThreadsAreWoken) {
  constexpr int kThreads = 6;
  constexpr int kRounds = 2000;
  std::mutex mutex;
  std::condition_variable changed;
  int begun = 0, ended = 0;
  bool all_met = true;
  ThreadPool pool("test", kThreads, 1000);
  const auto meet = [&](int round) {
    std::unique_lock lock(mutex);
    ++begun;
    changed.notify_all();
    all_met &=
        changed.wait_for(lock, std::chrono::seconds(30), [&] { return begun >= (round + 1) * kThreads; });
    ++ended;
    changed.notify_all();
  };
  for (int round = 0; round < kRounds; ++round) {
    const int from_within = round % kThreads;
    for (int i = from_within == 0 ? 0 : 1; i < kThreads - from_within; ++i)
      ASSERT_TRUE(pool.submit([&, round] { meet(round); }));
    if (from_within != 0) {
      ASSERT_TRUE(pool.submit([&, round, from_within] {
        for (int i = 0; i < from_within; ++i) ASSERT_TRUE(pool.submit([&, round] { meet(round); }));
        meet(round);
      }));
    }
    std::unique_lock lock(mutex);
    const bool all_ended =
        changed.wait_for(lock, std::chrono::seconds(60), [&] { return ended == (round + 1) * kThreads; });
    ASSERT_TRUE(all_ended && all_met) << round;
  }
}

TEST(ThreadPool, ATaskThatThrowsDoesNotEndItsThread) {
  std::atomic<bool> ran = false;
  {
    ThreadPool pool("test", 1, 10);
    pool.submit([] { throw std::runtime_error("on purpose"); });
    pool.submit([&] { ran = true; });
  }
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace divan
