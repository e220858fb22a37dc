#include "divan/base/async.h"

#include <gtest/gtest.h>

#include <memory>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "divan/base/thread_pool.h"

namespace divan {
namespace {

Async<int> number(int value) { co_return value; }

Async<std::unique_ptr<int>> moved(int value) { co_return std::make_unique<int>(value); }

Async<void> fails() {
  throw std::runtime_error("for the test");
  co_return;
}

Async<int> number_on(Executor& executor, int value) {
  co_await resume_on(executor);
  co_return value;
}

// Keeps coroutines until the test resumes them.
struct Later final : Executor {
  void resume(std::coroutine_handle<> coroutine) override { waiting.push_back(coroutine); }
  void run() {
    for (const auto coroutine : std::exchange(waiting, {})) coroutine.resume();
  }
  std::vector<std::coroutine_handle<>> waiting;
};

// The coroutine has ended before resume() returns.
struct OtherThread final : Executor {
  void resume(std::coroutine_handle<> coroutine) override {
    std::jthread([coroutine] { coroutine.resume(); });
  }
};

TEST(Async, AnAwaiterContinuesOnTheThreadOnWhichItsCoroutineEnds) {
  OtherThread other;
  std::vector<std::thread::id> threads;
  [](OtherThread& executor, std::vector<std::thread::id>& ran_on) -> Detached {
    const auto inner = [](OtherThread& on, std::vector<std::thread::id>& out) -> Async<void> {
      co_await resume_on(on);
      out.push_back(std::this_thread::get_id());
    };
    co_await inner(executor, ran_on);
    ran_on.push_back(std::this_thread::get_id());
  }(other, threads);
  ASSERT_EQ(threads.size(), 2u);
  EXPECT_EQ(threads[0], threads[1]);
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST(Async, ReturnsResults) {
  int sum = 0;
  [](int& out) -> Detached {
    out += co_await number(40);
    const auto two = co_await moved(2);
    out += *two;
  }(sum);
  EXPECT_EQ(sum, 42);
}

TEST(Async, DoesNotStartUnlessAwaited) {
  bool started = false;
  const auto start = [](bool& flag) -> Async<void> {
    flag = true;
    co_return;
  };
  { const auto unused = start(started); }
  EXPECT_FALSE(started);
}

TEST(Async, ThrowsToItsAwaiter) {
  std::string caught;
  [](std::string& out) -> Detached {
    try {
      co_await fails();
    } catch (const std::runtime_error& error) { out = error.what(); }
  }(caught);
  EXPECT_EQ(caught, "for the test");
}

TEST(Async, WaitsWithoutItsThread) {
  Later later;
  std::vector<int> seen;
  [](Later& executor, std::vector<int>& out) -> Detached {
    out.push_back(1);
    out.push_back(co_await number_on(executor, 2));
    out.push_back(3);
  }(later, seen);
  EXPECT_EQ(seen, std::vector<int>({1}));
  later.run();
  EXPECT_EQ(seen, std::vector<int>({1, 2, 3}));
}

TEST(Async, ThrowsAfterAWait) {
  Later later;
  std::string caught;
  [](Later& executor, std::string& out) -> Detached {
    try {
      co_await resume_on(executor);
      co_await fails();
    } catch (const std::runtime_error& error) { out = error.what(); }
  }(later, caught);
  later.run();
  EXPECT_EQ(caught, "for the test");
}

// Each would add to the stack if a coroutine that does not wait continued its awaiter by a call.
TEST(Async, ALoopDoesNotGrowTheStack) {
  std::int64_t sum = 0;
  [](std::int64_t& out) -> Detached {
    for (int i = 0; i < 1'000'000; ++i) out += co_await number(1);
  }(sum);
  EXPECT_EQ(sum, 1'000'000);
}

// The coroutine ends on one thread while its awaiter begins to wait on another.
TEST(Async, ContinuesItsAwaiterOnce) {
  constexpr int kRounds = 20'000;
  ThreadPool pool("test", 2, 10);
  std::binary_semaphore done{0};
  int sum = 0;
  [](ThreadPool& threads, int& out, std::binary_semaphore& end) -> Detached {
    for (int i = 0; i < kRounds; ++i) out += co_await number_on(threads, 1);
    end.release();
  }(pool, sum, done);
  done.acquire();
  EXPECT_EQ(sum, kRounds);
}

TEST(Async, DestroysLocalsBeforeItsAwaiterContinues) {
  const auto owned = std::make_shared<int>(1);
  long left = 0;
  [](std::shared_ptr<int> object, long& out) -> Detached {
    const auto hold = [](std::shared_ptr<int> copy) -> Async<int> {
      const auto another = copy;
      co_return *another;
    };
    {
      auto copy = object;
      co_await hold(std::move(copy));
    }
    out = object.use_count();
  }(owned, left);
  EXPECT_EQ(left, 2);
  EXPECT_EQ(owned.use_count(), 1);
}

}  // namespace
}  // namespace divan
