// A world with its own time, in which everything that happens follows from one seed.
//
// The world runs tasks: ordinary functions, each with a stack of its own, of which exactly one runs at any
// moment. A task yields where it waits (World::pause(), a Clock's waits) and nowhere else; the seed
// chooses the next one among those that can run. Time does not pass while a task runs: when none can run, the
// clock jumps to the next moment at which one can. So an hour takes milliseconds, and the same seed gives the
// same history, step by step.
//
// Tasks belong to processes, which can be frozen (their tasks do not run for a while, and then continue
// without noticing it) and crashed: then each of their tasks unwinds from the point where it waits, and the
// memory of the process is lost.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "divan/base/clock.h"
#include "divan/base/rng.h"
#include "sim/fiber.h"
#include "sim/process.h"

namespace divan::sim {

/// Unwinds the tasks of a crashed process. Not a std::exception, so that no handler of errors catches it.
struct Crash {};

/// Used by one thread, on which one task runs at a time.
class World {
 public:
  explicit World(std::uint64_t seed);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Rng& rng() { return rng_; }
  /// The true time, which processes cannot read.
  MonotonicTime now() const { return now_; }

  /// The process lasts as long as the world.
  Process& add_process(const std::string& name);

  /// Starts a task of the process's current incarnation; without a process it cannot be crashed or frozen. It
  /// runs when the current task yields.
  void spawn(Process* process, const std::string& name, std::function<void()> body);

  /// Runs until all tasks have ended. Not called by tasks.
  void run();

  // For tasks. All of them may throw Crash.

  /// Yields for `duration` (0: other tasks may run, time does not pass).
  void pause(Duration duration);
  /// Yields until `done()` or the deadline; returns done().
  bool wait(std::unique_lock<Mutex>* lock, MonotonicTime deadline, const std::function<bool()>& done);
  /// Returns true if the process of the current task has crashed. The task must not wait then.
  bool is_unwinding() const;

  /// Ends the current incarnation of the process: its tasks unwind.
  void crash(Process& process);
  void freeze(Process& process, Duration duration);

  /// Freezes all processes at once, as if their machine is paused. Meanwhile none may be crashed or started.
  void pause_machine(Duration duration);
  /// Ends a pause of the machine, and all freezes.
  void thaw();
  MonotonicTime paused_until() const { return pauses_.empty() ? MonotonicTime() : pauses_.back().end; }
  struct Paused {
    Duration duration{};
    int times = 0;
  };
  /// The pauses of the machine since then.
  Paused paused_since(MonotonicTime since) const;
  /// The number of the current task, which is unique in the world.
  std::uint64_t task() const;

  /// While this object exists, a crash does not unwind the current task: for destructors that use the store,
  /// which throws an error instead.
  class Unwindless {
   public:
    explicit Unwindless(World& world);
    ~Unwindless();
    Unwindless(const Unwindless&) = delete;
    Unwindless& operator=(const Unwindless&) = delete;

   private:
    World& world_;
  };

  // The history of the run.

  /// Records that an invariant does not hold, and ends the run. Later calls are ignored.
  void fail(const std::string& what);
  const std::string& failure() const { return failure_; }

  /// Adds a line to the history, of which the last lines and a hash of all are kept.
  void trace(std::string_view line);
  const std::deque<std::string>& last_lines() const { return lines_; }
  std::uint64_t trace_hash() const { return hash_; }
  void print_trace() { print_ = true; }

  /// Counts an event, for the statistics.
  void count(const std::string& what, std::int64_t by = 1) { counts_[what] += by; }
  const std::map<std::string, std::int64_t>& counts() const { return counts_; }
  std::int64_t steps() const { return steps_; }

 private:
  struct Task;

  Fiber* body(Task& task);
  void yield(Task& task);
  // The fiber that is to run next; time passes if it must.
  Fiber& next();
  Task* choose();
  bool can_run(Task& task);
  bool is_dead(const Task& task) const;
  void check_alive(Task& task);
  void mix(std::uint64_t value);

  SeededRng rng_;
  MonotonicTime now_{};
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<Task>> tasks_;
  struct Pause {
    MonotonicTime begin, end;
  };
  std::vector<Pause> pauses_;
  std::uint64_t spawned_ = 0;
  Fiber outside_;            // run()
  Task* current_ = nullptr;  // the task that runs

  std::string failure_;
  std::deque<std::string> lines_;
  std::uint64_t hash_ = 14695981039346656037u;
  bool print_ = false;
  std::map<std::string, std::int64_t> counts_;
  std::int64_t steps_ = 0;
};

}  // namespace divan::sim
