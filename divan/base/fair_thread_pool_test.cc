#include "divan/base/fair_thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <semaphore>

namespace divan {
namespace {

TEST(FairThreadPool, TasksOfAKeyRunInOrderAndNeverAtTheSameTime) {
  std::vector<int> order;
  std::atomic<int> running{0}, most{0};
  {
    FairThreadPool pool("test", 4);
    for (int i = 0; i < 1000; ++i) {
      ASSERT_TRUE(pool.submit(7, [&, i] {
        most = std::max(most.load(), ++running);
        order.push_back(i);
        --running;
      }));
    }
  }
  ASSERT_EQ(order.size(), 1000u);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(order[i], i);
  EXPECT_EQ(most, 1);
}

TEST(FairThreadPool, ASlowKeyHoldsOneThread) {
  FairThreadPool pool("test", 2);
  std::binary_semaphore hold{0}, done{0};
  std::atomic<int> slow{0};
  for (int i = 0; i < 10; ++i) {
    pool.submit(1, [&] {
      if (slow++ == 0) hold.acquire();
    });
  }
  pool.submit(2, [&] { done.release(); });
  done.acquire();  // while the first task of the other key still runs
  EXPECT_LE(slow, 1);
  hold.release();
  pool.stop();
  EXPECT_EQ(slow, 10);
}

TEST(FairThreadPool, KeysTakeTurns) {
  FairThreadPool pool("test", 1);
  std::latch begun{1};
  std::binary_semaphore hold{0};
  std::vector<int> order;
  pool.submit(1, [&] {
    begun.count_down();
    hold.acquire();
  });
  begun.wait();
  for (int i = 0; i < 3; ++i) pool.submit(1, [&] { order.push_back(1); });
  for (int i = 0; i < 3; ++i) pool.submit(2, [&] { order.push_back(2); });
  hold.release();
  pool.stop();
  EXPECT_EQ(order, (std::vector<int>{2, 1, 2, 1, 2, 1}));
}

TEST(FairThreadPool, ATaskThatThrowsDoesNotStopItsKey) {
  FairThreadPool pool("test", 1);
  bool ran = false;
  pool.submit(1, [] { throw std::runtime_error("wrong"); });
  pool.submit(1, [&] { ran = true; });
  pool.stop();
  EXPECT_TRUE(ran);
  EXPECT_FALSE(pool.submit(1, [] {}));
}

TEST(FairThreadPool, StoppingRunsWhatIsQueuedByTasks) {
  FairThreadPool pool("test", 2);
  std::atomic<int> ran{0};
  std::latch begun{1};
  pool.submit(1, [&] {
    begun.count_down();
    for (int i = 0; i < 100; ++i) pool.submit(i % 5, [&] { ++ran; });
  });
  begun.wait();
  while (ran < 100) std::this_thread::yield();
  pool.stop();
  EXPECT_EQ(ran, 100);
}

}  // namespace
}  // namespace divan
