// The thread of a background component.
//
// Such a component has a step() that does pending work and returns the time of its next call. Tests and
// the simulation call step() directly. In the server a WorkerLoop calls it: first when the loop is started,
// and then at the returned time, or earlier if the loop's notifier is notified.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "divan/base/notifier.h"

namespace divan {

/// Thread-safe, except start() and join(), which only the owner may call. The clock and all objects that the
/// step uses must exist until join() has returned or the loop is destroyed.
class WorkerLoop {
 public:
  /// Returns the time of the next call; MonotonicTime::max(): call only when notified.
  using Step = std::function<MonotonicTime()>;

  /// `name` (at most 15 characters) is the thread's name in a debugger. An exception of the step is logged,
  /// and the step is called again a second later.
  WorkerLoop(const Clock& clock, std::string name, Step step);
  /// Calls stop() and join().
  ~WorkerLoop();
  WorkerLoop(const WorkerLoop&) = delete;
  WorkerLoop& operator=(const WorkerLoop&) = delete;

  /// Starts the thread. Must be called at most once.
  void start();

  /// Makes the thread end after the current step. Does not wait for it.
  void stop() { notifier_->stop(); }
  bool stopped() const { return notifier_->stopped(); }
  /// Waits until the thread has ended. Must not be called by the step.
  void join();

  /// Makes the thread call the step at once, or again after the current call.
  void notify() { notifier_->notify(); }
  /// For callbacks that may outlive the loop.
  const std::shared_ptr<Notifier>& notifier() const { return notifier_; }

 private:
  void run();

  const Clock& clock_;
  const std::string name_;
  const Step step_;
  const std::shared_ptr<Notifier> notifier_ = std::make_shared<Notifier>();
  std::thread thread_;
};

}  // namespace divan
