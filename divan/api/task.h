// Work that waits without holding a thread.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>

#include "divan/api/call.h"
#include "divan/api/context.h"
#include "divan/events/bus.h"

namespace divan::api {

/// A request that is worked on in steps. A step runs on the thread pool; between steps the task waits for
/// wake(), which events, watches, timers and drained sockets call. It ends when a step says so or the
/// connection is lost. The exchange owns the task while it waits. Steps never overlap; wake() is thread-safe.
///
/// A client that ends its side of the connection wakes its task: what waits for something that may never come
/// (a feed, a worker's registration) ends itself then (Exchange::half_closed()); everything else goes on.
class Task : public std::enable_shared_from_this<Task> {
 public:
  Task(const Context& context, CallPtr call) : context_(context), call_(std::move(call)) {}
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  /// Takes the first step on the calling thread (of the pool).
  void start();

  /// Another step is to be taken: soon, or after the one that is being taken.
  void wake();

  /// As wake(), but if the task waits, the step is taken on the calling thread before this returns.
  void wake_here();

  /// A callback that wakes this task if it is still there.
  std::function<void()> waker();

 protected:
  /// Does what can be done now. True when the request has been answered to its end; false to wait for wake().
  /// What it throws is the answer if none has begun, and otherwise cuts the answer off.
  virtual bool step() = 0;

  /// wake() after a while. A task has one such timer; setting it again moves it.
  void wake_after(std::chrono::milliseconds delay);
  void cancel_timer();

  /// From now on the server's stop wakes this task, which is to end itself then: what never ends by itself
  /// calls this.
  void heed_stop();
  /// Whether the server has begun to stop.
  bool stopping() const { return context_.stopping; }

  http::Exchange& exchange() const { return *call_->exchange(); }

  const Context& context_;  // the service's
  const CallPtr call_;

 private:
  enum class State { waiting, queued, running, running_and_woken, done };

  void run();
  void fail(const Error& error);
  void submit();

  std::mutex mutex_;
  State state_ = State::running;
  std::optional<http::Exchange::TimerId> timer_;
  std::optional<events::Subscription> stop_;
};

/// Wakes all tasks that heed it, to end themselves; those that begin later find out by themselves.
void stop_tasks(const Context& context);

}  // namespace divan::api
