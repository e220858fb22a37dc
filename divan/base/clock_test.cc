#include "divan/base/clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace divan {
namespace {

TEST(ManualClock, AWaiterWakesWhenItsDeadlineHasPassedVirtually) {
  ManualClock clock;
  const auto wall = clock.wall_ms();
  const auto deadline = clock.now() + std::chrono::hours(1);
  std::atomic<bool> woke = false;
  std::thread sleeper([&] {
    Mutex mutex(MutexRank::last, "test");
    ConditionVariable never;
    std::unique_lock lock(mutex);
    EXPECT_FALSE(clock.wait_until(lock, never, deadline, [] { return false; }));
    woke = true;
  });
  clock.advance(std::chrono::minutes(59));
  EXPECT_FALSE(woke);
  clock.advance(std::chrono::minutes(1));
  sleeper.join();
  EXPECT_TRUE(woke);
  EXPECT_EQ(clock.wall_ms() - wall, 3'600'000);
}

TEST(SystemClock, WaitReturnsWhetherTheConditionHolds) {
  SystemClock clock;
  Mutex mutex(MutexRank::last, "test");
  ConditionVariable changed;
  bool done = false;
  std::thread setter([&] {
    std::lock_guard lock(mutex);
    done = true;
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  EXPECT_TRUE(clock.wait_until(lock, changed, MonotonicTime::max(), [&] { return done; }));
  EXPECT_FALSE(clock.wait_until(lock, changed, clock.now(), [] { return false; }));
  setter.join();
}

}  // namespace
}  // namespace divan
