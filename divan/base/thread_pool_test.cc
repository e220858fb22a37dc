#include "divan/base/thread_pool.h"

#include <future>

namespace divan {
namespace {

TEST(ThreadPool, RunsEverythingThatItTookBeforeItEnds) {
  std::atomic<int> ran = 0;
  {
    ThreadPool pool("test", 3, 1000);
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(pool.submit([&] { ++ran; }));
  }
  EXPECT_EQ(ran, 500);
}

TEST(ThreadPool, RefusesWhenTooManyWait) {
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

TEST(ThreadPool, ATaskThatThrowsEndsNothing) {
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
