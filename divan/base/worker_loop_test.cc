#include "divan/base/worker_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

namespace divan {
namespace {

using std::chrono::seconds;

void wait_for(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::yield();
}

TEST(Notifier, ANotificationBeforeTheWaitEndsItAndIsThenGone) {
  ManualClock clock;
  Notifier notifier;
  notifier.notify();
  notifier.notify();
  EXPECT_TRUE(notifier.notified());
  EXPECT_TRUE(notifier.wait_until(clock, MonotonicTime::max()));
  EXPECT_FALSE(notifier.notified());
  EXPECT_TRUE(notifier.wait_until(clock, clock.now()));  // by its deadline
}

TEST(Notifier, StopEndsAllWaits) {
  ManualClock clock;
  Notifier notifier;
  notifier.stop();
  EXPECT_FALSE(notifier.wait_until(clock, MonotonicTime::max()));
  EXPECT_FALSE(notifier.wait_until(clock, MonotonicTime::max()));
  EXPECT_FALSE(notifier.pause_until(clock, MonotonicTime::max()));
}

// A clock whose waits end at once and record whether their condition held.
class RecordingClock final : public Clock {
 public:
  MonotonicTime now() const override { return {}; }
  std::int64_t wall_ms() const override { return 0; }
  bool wait_until(std::unique_lock<Mutex>&, ConditionVariable&, MonotonicTime,
                  const std::function<bool()>& done) const override {
    conditions.push_back(done());
    return conditions.back();
  }

  mutable std::vector<bool> conditions;
};

TEST(Notifier, ANotificationEndsAWaitAndNoPause) {
  RecordingClock clock;
  Notifier notifier;
  notifier.notify();
  EXPECT_TRUE(notifier.pause_until(clock, MonotonicTime::max()));
  EXPECT_TRUE(notifier.wait_until(clock, MonotonicTime::max()));
  EXPECT_EQ(clock.conditions, (std::vector<bool>{false, true}));
}

// Each value that is pushed is seen, whichever way the two threads interleave.
TEST(Notifier, NoChangeIsMissed) {
  SystemClock clock;
  Notifier notifier;
  std::atomic<int> pushed = 0;
  int seen = 0;
  std::thread waiter([&] {
    while (seen < 20'000 && notifier.wait_until(clock, MonotonicTime::max())) seen = pushed;
  });
  for (int i = 1; i <= 20'000; ++i) {
    pushed = i;
    notifier.notify();
  }
  waiter.join();
  EXPECT_EQ(seen, 20'000);
}

TEST(WorkerLoop, StepsAtOnceAndAtItsTime) {
  ManualClock clock;
  std::atomic<int> steps = 0;
  WorkerLoop loop(clock, "test", [&] {
    ++steps;
    return clock.now() + seconds(10);
  });
  loop.start();
  wait_for([&] { return steps == 1; });
  // Until the step has returned, its time is not known.
  wait_for([&] {
    clock.advance(seconds(10));
    return steps >= 2;
  });
}

TEST(WorkerLoop, StepsWhenNotified) {
  ManualClock clock;
  std::atomic<int> steps = 0;
  WorkerLoop loop(clock, "test", [&] {
    ++steps;
    return MonotonicTime::max();
  });
  loop.start();
  wait_for([&] { return steps == 1; });
  loop.notify();
  wait_for([&] { return steps == 2; });
}

TEST(WorkerLoop, ANotificationDuringAStepLeadsToAnother) {
  ManualClock clock;
  std::atomic<int> steps = 0;
  std::unique_ptr<WorkerLoop> loop;
  loop = std::make_unique<WorkerLoop>(clock, "test", [&] {
    if (++steps == 1) loop->notify();
    return MonotonicTime::max();
  });
  loop->start();
  wait_for([&] { return steps == 2; });
}

TEST(WorkerLoop, AStepThatThrowsIsCalledAgainAfterAPause) {
  RecordingClock clock;
  int steps = 0;
  WorkerLoop loop(clock, "test", [&]() -> MonotonicTime {
    if (++steps == 2) loop.stop();
    loop.notify();
    throw std::runtime_error("on purpose");
  });
  loop.start();
  loop.join();
  EXPECT_EQ(steps, 2);
  // A notification does not end the pause; stop() does.
  EXPECT_EQ(clock.conditions, (std::vector<bool>{false, true}));
}

TEST(WorkerLoop, StopsAfterItsStepAndBeforeTheNext) {
  ManualClock clock;
  std::atomic<int> steps = 0;
  WorkerLoop loop(clock, "test", [&] {
    ++steps;
    loop.stop();
    return clock.now();
  });
  loop.start();
  loop.join();
  EXPECT_EQ(steps, 1);
}

TEST(WorkerLoop, MayEndWithoutAStart) {
  ManualClock clock;
  WorkerLoop loop(clock, "test", [] { return MonotonicTime::max(); });
}

}  // namespace
}  // namespace divan
