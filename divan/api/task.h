// Work that waits without holding a thread.
#pragma once

#include <chrono>
#include <memory>

#include "divan/api/call.h"
#include "divan/api/context.h"
#include "divan/base/mutex.h"
#include "divan/events/bus.h"

namespace divan::api {

/// A request that is processed in steps. A step runs on the thread pool; between steps the task waits for
/// wake(), which is called by events, watches, timers and drained sockets. The task ends when a step returns
/// true or the connection is lost. The exchange owns the task while it waits. Steps never overlap; wake() is
/// thread-safe.
///
/// A client that closes its side of the connection wakes the task. A task that waits for something that may
/// never happen (a feed, a worker's registration) must then end (Exchange::half_closed()); all others
/// continue.
class Task : public std::enable_shared_from_this<Task> {
 public:
  Task(const Context& context, CallPtr call) : context_(context), call_(std::move(call)) {}
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  /// Runs the first step on the calling thread, which must belong to the pool.
  void start();

  /// Schedules another step: soon, or after the running one.
  void wake();

  /// Like wake(), but if the task is waiting, runs the step on the calling thread before it returns.
  void wake_here();

  /// Returns a callback that wakes this task unless it was destroyed.
  std::function<void()> waker();

 protected:
  /// Does what can be done now. Returns true if the response is complete, and false to wait for wake(). An
  /// exception is the response if none has begun, and otherwise aborts it.
  virtual bool step() = 0;

  /// Calls wake() after a delay. A task has one such timer; setting it again reschedules it.
  void wake_after(std::chrono::milliseconds delay);
  void cancel_timer();

  /// Wakes this task when the server stops; the task must then end. Must be called by tasks that do not end
  /// by themselves.
  void wake_on_stop();
  /// Returns true if the server has begun to stop.
  bool stopping() const { return context_.stopping; }

  http::Exchange& exchange() const { return *call_->exchange(); }

  const Context& context_;  // the service's
  const CallPtr call_;

 private:
  enum class State { waiting, queued, running, running_and_woken, done };

  void run();
  void fail(const Error& error);
  void submit();

  Mutex mutex_{MutexRank::task, "Task::mutex_"};  // protects state_
  State state_ = State::running;
  std::optional<http::Exchange::TimerId> timer_;
  std::optional<events::Subscription> stop_;
};

/// Wakes all tasks that have called wake_on_stop(); tasks that begin later check stopping().
void stop_tasks(const Context& context);

}  // namespace divan::api
