// Functions with stacks of their own, of which one runs at a time.
#pragma once

#include <functional>
#include <memory>

namespace divan::sim {

/// A function that stops where it switches to another fiber, and goes on when that or a third one switches
/// back. Fibers that switch to each other belong to one thread. A switch takes a hundredth of the time that
/// two threads need. With sanitizers, which do not follow switches of stacks, each fiber is a thread.
class Fiber {
 public:
  /// The code that constructs it.
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
