// A model test of WorkerLoop: every interleaving of its thread with threads that change what its step reads
// and notify it, with the passage of time, and with a thread that stops it.
//
// The loop runs on its own thread, but only one thread runs at any moment. The loop's thread hands over to
// the test where other threads could come between its actions: before and after its step reads, and where it
// waits (in ModelClock). The test takes all schedules, one after the other. A schedule ends when the other
// threads have ended and the loop would wait for ever, or has ended. Then it must have read the last change,
// or was stopped.
#include <gtest/gtest.h>

#include <optional>
#include <semaphore>
#include <stdexcept>

#include "divan/base/log.h"
#include "divan/base/schedules_testing.h"
#include "divan/base/worker_loop.h"

namespace divan {
namespace {

using std::chrono::seconds;

// Hands over between the test and the loop's thread.
class Turns {
 public:
  // For the loop's thread: returns when the test resumes it.
  void yield() {
    thread_local AtThreadEnd at_end;
    at_end.turns = this;
    to_test_.release();
    to_loop_.acquire();
  }
  // For the test: returns when the loop's thread yields or has ended.
  void resume() {
    to_loop_.release();
    await();
  }
  void await() { to_test_.acquire(); }
  bool has_ended() const { return has_ended_; }

 private:
  struct AtThreadEnd {
    Turns* turns = nullptr;
    ~AtThreadEnd() {
      turns->has_ended_ = true;
      turns->to_test_.release();
    }
  };
  std::binary_semaphore to_test_{0}, to_loop_{0};
  bool has_ended_ = false;
};

class ModelClock final : public Clock {
 public:
  explicit ModelClock(Turns& turns) : turns_(turns) {}

  MonotonicTime now() const override { return now_; }
  std::int64_t wall_ms() const override { return 0; }
  bool wait_until(std::unique_lock<Mutex>& lock, ConditionVariable&, MonotonicTime deadline,
                  const std::function<bool()>& done) const override {
    while (!done() && now_ < deadline) {
      wait_ = {lock.mutex(), &done, deadline};
      lock.unlock();
      turns_.yield();
      lock.lock();
      wait_.reset();
    }
    return done();
  }

  // For the test, while the loop's thread has yielded.

  bool is_blocked() const {
    if (!wait_) return false;
    std::lock_guard lock(*wait_->mutex);
    return now_ < wait_->deadline && !(*wait_->done)();
  }
  MonotonicTime deadline() const { return wait_->deadline; }
  void advance_to(MonotonicTime time) { now_ = std::max(now_, time); }

 private:
  struct Wait {
    Mutex* mutex;
    const std::function<bool()>* done;
    MonotonicTime deadline;
  };
  Turns& turns_;
  MonotonicTime now_{};
  mutable std::optional<Wait> wait_;
};

struct Program {
  int changers = 2;  // threads that make one change each, and then notify
  bool stops = false;
  int throwing_step = 0;     // this call of the step throws after it has read; 0: none
  int retrying_step = 0;     // this call wants to be called again a second later
  bool time_passes = false;  // by two seconds, at any moment
};

// Runs one schedule to its end. Returns true if the loop was stopped and has ended, or waits and has read the
// last change.
bool run(const Program& program, Schedules& schedules) {
  Turns turns;
  ModelClock clock(turns);
  int value = 0, seen = -1, calls = 0;
  WorkerLoop loop(clock, "model", [&] {
    turns.yield();
    seen = value;
    turns.yield();
    if (++calls == program.throwing_step) throw std::runtime_error("the step failed");
    return calls == program.retrying_step ? clock.now() + seconds(1) : MonotonicTime::max();
  });
  std::vector<std::vector<std::function<void()>>> others;  // the steps that are left, in reverse order
  for (int i = 0; i < program.changers; ++i) others.push_back({[&] { loop.notify(); }, [&] { ++value; }});
  if (program.stops) others.push_back({[&] { loop.stop(); }});
  if (program.time_passes) others.push_back({[&] { clock.advance_to(clock.now() + seconds(2)); }});
  loop.start();
  turns.await();
  for (;;) {
    std::vector<std::size_t> ready;  // 0 is the loop
    if (!turns.has_ended() && !clock.is_blocked()) ready.push_back(0);
    for (std::size_t i = 0; i < others.size(); ++i) {
      if (!others[i].empty()) ready.push_back(i + 1);
    }
    if (!ready.empty()) {
      const std::size_t thread = ready[schedules.choose(ready.size())];
      if (thread == 0) {
        turns.resume();
      } else {
        const auto step = std::move(others[thread - 1].back());
        others[thread - 1].pop_back();
        step();
      }
    } else if (!turns.has_ended() && clock.deadline() != MonotonicTime::max()) {
      clock.advance_to(clock.deadline());
    } else {
      break;
    }
  }
  const bool right = turns.has_ended() ? program.stops : !program.stops && seen == value;
  if (!turns.has_ended()) {
    // The end of a schedule without a stop: the loop waits, and ends once it is stopped.
    loop.stop();
    while (!turns.has_ended()) turns.resume();
  }
  return right;
}

struct Counts {
  int schedules = 0;
  int wrong = 0;
};

Counts run_all(const Program& program) {
  Schedules schedules;
  Counts counts;
  do { counts.wrong += run(program, schedules) ? 0 : 1; } while (schedules.next());
  counts.schedules = schedules.count();
  return counts;
}

TEST(WorkerLoopModel, NoChangeAndNoStopIsLost) {
  log::set_level(log::Level::off);  // the errors of the step
  const Program programs[] = {{},
                              {.changers = 1, .stops = true},
                              {.changers = 1, .throwing_step = 1},
                              {.changers = 1, .throwing_step = 2},
                              {.changers = 1, .stops = true, .throwing_step = 1},
                              {.changers = 1, .retrying_step = 1, .time_passes = true},
                              {.changers = 0, .stops = true, .retrying_step = 1, .time_passes = true}};
  for (const auto& program : programs) {
    SCOPED_TRACE(&program - programs);
    const auto counts = run_all(program);
    EXPECT_GT(counts.schedules, 5);
    EXPECT_EQ(counts.wrong, 0);
  }
  log::set_level(log::Level::info);
}

}  // namespace
}  // namespace divan
