// The thread of a component that works in the background.
//
// Such a component has a step() that does what there is to do and returns when it wants to be called again.
// Its tests and the simulation call step() themselves. In the server a WorkerLoop calls it: at once when it
// is started, then whenever that time has come or the loop's notifier was notified.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "divan/base/notifier.h"

namespace divan {

/// start() and join() are for the owner; the others are thread-safe. The clock, and what the step uses, must
/// outlive the loop or its join().
class WorkerLoop {
 public:
  /// Returns when it is to be called next; MonotonicTime::max(): only when notified.
  using Step = std::function<MonotonicTime()>;

  /// `name` (at most 15 characters) is what a debugger shows. A step that throws is logged, and called again
  /// a second later.
  WorkerLoop(const Clock& clock, std::string name, Step step);
  /// As stop() and join().
  ~WorkerLoop();
  WorkerLoop(const WorkerLoop&) = delete;
  WorkerLoop& operator=(const WorkerLoop&) = delete;

  /// Starts the thread. Once.
  void start();

  /// Asks the thread to end after its present step, and does not wait for it.
  void stop() { notifier_->stop(); }
  bool stopped() const { return notifier_->stopped(); }
  /// Waits until the thread has ended. Not to be called by the step.
  void join();

  /// Calls the step soon.
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
