// Functions with stacks of their own, of which one runs at a time.
#pragma once

#include <functional>
#include <memory>

namespace divan::sim {

/// A function that stops where it switches to another fiber, and continues when a fiber switches back to it.
/// Fibers that switch to each other belong to one thread. A switch does not involve the scheduler of the
/// operating system, so it is fast, also on a busy machine. With sanitizers, which do not follow switches of
/// stacks, each fiber has a thread.
class Fiber {
 public:
  /// Represents the code that constructs it.
  Fiber();
  /// Runs `body` when it is switched to for the first time. `body` must not throw. It returns the fiber that
  /// runs after it has ended.
  explicit Fiber(std::function<Fiber*()> body);
  /// The fiber must have ended, or never run.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Stops this fiber, which must be the running one, and lets `next` run. Returns when a fiber switches to
  /// this one.
  void switch_to(Fiber& next);

 private:
  struct State;
  void run();

  std::function<Fiber*()> body_;
  std::unique_ptr<State> state_;
};

}  // namespace divan::sim
