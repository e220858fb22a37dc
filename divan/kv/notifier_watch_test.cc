// A model test of waiting for a change of the store (base/notifier.h, Watch): every interleaving of a waiter
// with threads that change the store, and with one that stops the waiter.
//
// The threads are lists of steps, each of which is atomic in reality: a call of a Notifier or a Watch, or a
// transaction. The test takes all schedules of these steps, one after the other, and makes the calls on the
// real objects. A wait is a step that is possible only if it would not block; so a schedule ends when all
// other threads have ended and the waiter would block. Then it must have seen the last change. If the store
// has too many watches, the waiter gets none (Transaction::try_watch()) and waits for a time only.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "divan/base/notifier.h"
#include "divan/base/schedules_testing.h"
#include "divan/kv/store.h"

namespace divan::kv {
namespace {

// What the waiter does in each round, in an order that a test may change.
enum class WaiterStep { clear, read, set_callback, wait };

struct Model {
  std::vector<WaiterStep> round{WaiterStep::read, WaiterStep::set_callback, WaiterStep::wait};
  int changers = 2;  // threads with one change each
  bool stops = false;
  int refusals = 0;  // the waiter gets no watch up to so many times

  ManualClock clock{};
  // The store: a number, and the watches that its next change fires.
  int value = 0;
  std::vector<std::shared_ptr<Watch>> watches{};
  // The waiter, until it ends.
  std::shared_ptr<Notifier> notifier = std::make_shared<Notifier>();
  std::shared_ptr<Watch> watch{};
  std::size_t at = 0;  // in the round
  int seen = -1;
  // The other threads: the steps that are left.
  std::vector<std::vector<std::function<void()>>> others{};

  void prepare() {
    for (int i = 0; i < changers; ++i) {
      const auto fired = std::make_shared<std::vector<std::shared_ptr<Watch>>>();
      others.push_back({[this, fired] {
                          ++value;
                          fired->swap(watches);
                        },
                        [fired] {
                          for (const auto& each : *fired) each->fire();
                        }});
    }
    if (stops) others.push_back({[stopped = notifier] { stopped->stop(); }});
  }

  bool waiter_can_run() const {
    return notifier != nullptr && (round[at] != WaiterStep::wait || watch == nullptr || notifier->notified());
  }

  void run_waiter(Schedules& schedules) {
    switch (round[at]) {
      case WaiterStep::clear: notifier->clear(); break;
      case WaiterStep::read:  // one transaction
        seen = value;
        watch = nullptr;
        if (refusals > 0 && schedules.choose(2) == 1) {
          --refusals;
        } else {
          watch = watches.emplace_back(std::make_shared<Watch>());
        }
        break;
      case WaiterStep::set_callback:
        if (watch != nullptr) watch->on_end([called = notifier] { called->notify(); });
        break;
      case WaiterStep::wait:
        if (!notifier->wait_until(clock, clock.now())) {
          // The waiter ends. Its watch may fire later.
          notifier.reset();
          watch.reset();
          return;
        }
        break;
    }
    at = (at + 1) % round.size();
  }

  // Runs one schedule to its end; returns true if the waiter has ended or has seen the last change.
  bool run(Schedules& schedules) {
    prepare();
    for (;;) {
      std::vector<std::size_t> ready;  // threads; 0 is the waiter
      if (waiter_can_run()) ready.push_back(0);
      for (std::size_t i = 0; i < others.size(); ++i) {
        if (!others[i].empty()) ready.push_back(i + 1);
      }
      if (ready.empty()) return notifier == nullptr ? stops : !stops && seen == value;
      const std::size_t thread = ready[schedules.choose(ready.size())];
      if (thread == 0) {
        run_waiter(schedules);
      } else {
        auto& steps = others[thread - 1];
        const auto step = std::move(steps.front());
        steps.erase(steps.begin());
        step();
      }
    }
  }
};

struct Counts {
  int schedules = 0;
  int lost = 0;  // schedules that end without the waiter having seen the last change or its stop
};

Counts run_all(const std::vector<WaiterStep>& round, int changers, bool stops, int refusals = 0) {
  Schedules schedules;
  int lost = 0;
  do {
    Model model{.round = round, .changers = changers, .stops = stops, .refusals = refusals};
    lost += model.run(schedules) ? 0 : 1;
  } while (schedules.next());
  return {schedules.count(), lost};
}

constexpr auto kClear = WaiterStep::clear, kRead = WaiterStep::read, kSetCallback = WaiterStep::set_callback,
               kWait = WaiterStep::wait;

TEST(NotifierWatchModel, NoChangeAndNoStopIsLost) {
  // With and without a stop; the waiter may clear the notification before it reads.
  const Counts cases[] = {
      run_all({kRead, kSetCallback, kWait}, 3, false),
      run_all({kClear, kRead, kSetCallback, kWait}, 3, false), run_all({kRead, kSetCallback, kWait}, 2, true),
      run_all({kRead, kSetCallback, kWait}, 2, false, 2), run_all({kRead, kSetCallback, kWait}, 2, true, 1)};
  for (const Counts& counts : cases) {
    SCOPED_TRACE(&counts - cases);
    EXPECT_GT(counts.schedules, 1000);
    EXPECT_EQ(counts.lost, 0);
  }
}

// The model finds the mistakes that it is for.
TEST(NotifierWatchModel, AWaiterThatClearsAfterItReadLosesChanges) {
  EXPECT_GT(run_all({kRead, kSetCallback, kClear, kWait}, 1, false).lost, 0);
}

}  // namespace
}  // namespace divan::kv
