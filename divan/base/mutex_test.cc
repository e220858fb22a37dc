#include "divan/base/mutex.h"

#include <gtest/gtest.h>

#include <thread>

namespace divan {
namespace {

TEST(Mutex, IsLockedInTheOrderOfTheRanks) {
  Mutex outer{MutexRank::ken, "outer"}, inner{MutexRank::notifier, "inner"};
  for (int i = 0; i < 2; ++i) {
    std::lock_guard a(outer);
    std::lock_guard b(inner);
  }
  // Unlocked in another order.
  std::unique_lock a(outer);
  std::unique_lock b(inner);
  a.unlock();
  b.unlock();
  a.lock();
  EXPECT_TRUE(b.try_lock());
}

TEST(Mutex, EachThreadHasItsOwnOrder) {
  Mutex outer{MutexRank::ken, "outer"}, inner{MutexRank::notifier, "inner"};
  std::lock_guard lock(inner);
  std::thread([&] { std::lock_guard other(outer); }).join();
}

TEST(Mutex, WaitsWithItsConditionVariable) {
  Mutex mutex{MutexRank::ken, "mutex"};
  ConditionVariable changed;
  bool ready = false;
  std::unique_lock lock(mutex);
  EXPECT_FALSE(changed.wait_for(lock, std::chrono::milliseconds(1), [&] { return ready; }));
  std::thread notifier([&] {
    std::lock_guard other(mutex);
    ready = true;
    changed.notify_all();
  });
  changed.wait(lock, [&] { return ready; });
  EXPECT_TRUE(lock.owns_lock());
  lock.unlock();
  notifier.join();
}

#ifdef DIVAN_CHECK_MUTEX_RANKS

TEST(MutexDeathTest, TheWrongOrderEndsTheProcess) {
  Mutex outer{MutexRank::ken, "outer"}, inner{MutexRank::notifier, "inner"};
  Mutex equal{MutexRank::notifier, "equal"};
  std::lock_guard lock(inner);
  EXPECT_DEATH(outer.lock(), "Mutex outer must not be locked while inner is held");
  EXPECT_DEATH(equal.lock(), "Mutex equal must not be locked while inner is held");
}

TEST(MutexDeathTest, AMutexThatWasUnlockedInBetweenDoesNotHideAnother) {
  Mutex first{MutexRank::catalog, "first"}, second{MutexRank::notifier, "second"};
  Mutex outer{MutexRank::ken, "outer"};
  std::unique_lock a(first);
  std::unique_lock b(second);
  a.unlock();
  EXPECT_DEATH(outer.lock(), "while second is held");
  b.unlock();
  std::lock_guard c(outer);
}

TEST(MutexDeathTest, ALockThatWasTriedCounts) {
  Mutex outer{MutexRank::ken, "outer"}, inner{MutexRank::notifier, "inner"};
  std::unique_lock lock(inner, std::try_to_lock);
  EXPECT_DEATH(outer.lock(), "while inner is held");
}

#endif

}  // namespace
}  // namespace divan
