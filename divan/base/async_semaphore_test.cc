#include "divan/base/async_semaphore.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "divan/base/thread_pool.h"

namespace divan {
namespace {

struct ManualExecutor final : Executor {
  void resume(std::coroutine_handle<> coroutine) override { waiting.push_back(coroutine); }
  void run() {
    for (const auto coroutine : std::exchange(waiting, {})) coroutine.resume();
  }
  std::vector<std::coroutine_handle<>> waiting;
};

struct AsyncSemaphores : ::testing::Test {
  AsyncSemaphore semaphore{2, MutexRank::upload_writes, "AsyncSemaphoreTest"};
  ManualExecutor holders, waiters;
  std::string began;

  Detached hold(char name) {
    const auto permit = co_await semaphore.acquire(waiters);
    began += name;
    co_await resume_on(holders);
  }
};

TEST_F(AsyncSemaphores, PermitsGoToThoseThatWaitInTheirOrder) {
  for (const char name : {'a', 'b', 'c', 'd', 'e'}) hold(name);
  EXPECT_EQ(began, "ab");
  holders.run();
  EXPECT_EQ(began, "ab");  // on their executor only
  waiters.run();
  EXPECT_EQ(began, "abcd");
  holders.run();
  waiters.run();
  EXPECT_EQ(began, "abcde");
  // All permits are free again.
  holders.run();
  for (const char name : {'f', 'g', 'h'}) hold(name);
  EXPECT_EQ(began, "abcdefg");
  holders.run();
  waiters.run();
  holders.run();
  EXPECT_EQ(began, "abcdefgh");
}

TEST_F(AsyncSemaphores, AnExceptionGivesThePermitBack) {
  for (int i = 0; i < 3; ++i) {
    [](AsyncSemaphore& of, Executor& on, std::string& out) -> Detached {
      try {
        const auto permit = co_await of.acquire(on);
        throw std::runtime_error("for the test");
      } catch (const std::runtime_error&) { out += 'x'; }
    }(semaphore, waiters, began);
  }
  EXPECT_EQ(began, "xxx");
}

TEST_F(AsyncSemaphores, NeverMoreHoldersThanPermits) {
  std::atomic<int> holding = 0, most = 0, ended = 0;
  {
    ThreadPool pool("test", 8, 10'000);
    const auto work = [&]() -> Detached {
      co_await resume_on(pool);
      for (int i = 0; i < 20; ++i) {
        const auto permit = co_await semaphore.acquire(pool);
        const int now = ++holding;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {}
        co_await resume_on(pool);
        --holding;
      }
      ++ended;
    };
    for (int i = 0; i < 100; ++i) work();
    while (ended < 100) std::this_thread::yield();
  }
  EXPECT_EQ(most, 2);
}

}  // namespace
}  // namespace divan
