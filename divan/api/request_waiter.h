// How the coroutine of a request waits: for events, watches, a time, or until the client has read.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "divan/api/call.h"
#include "divan/api/context.h"
#include "divan/events/bus.h"

namespace divan::api {

/// Ends the waits of a coroutine. Thread-safe. May be called when the coroutine has ended.
class Waker {
 public:
  explicit Waker(RequestExecutor& executor) : executor_(executor) {}

  /// Ends the present wait or, if the coroutine does not wait, its next one. Does not block.
  void wake();
  /// Like wake(), but if the coroutine waits, it continues on the calling thread, as on an io thread
  /// (request_executor.h), before this returns.
  void wake_here();

 private:
  friend class RequestWaiter;
  enum class State : std::uint8_t { running, woken, waiting };

  std::atomic<State> state_ = State::running;
  // Valid while the coroutine waits.
  RequestExecutor& executor_;
  std::coroutine_handle<> coroutine_;
};

/// The waits of one request. Not thread-safe: used by the request's coroutine, in which it must live.
class RequestWaiter {
 public:
  /// The references must outlive the waiter. A request has at most one at a time.
  RequestWaiter(const Context& context, Call& call);
  ~RequestWaiter() { cancel_timer(); }
  RequestWaiter(const RequestWaiter&) = delete;
  RequestWaiter& operator=(const RequestWaiter&) = delete;

  /// co_await: continues when the waker was called since the last wait, or after `delay`. May also continue
  /// without need: the caller checks what it waits for. A client that closes its side of the connection ends
  /// the wait: one that waits for something that may never happen must then end (Exchange::half_closed()).
  /// Throws client_closed_request (499) if the connection is lost.
  auto wait(std::optional<std::chrono::milliseconds> delay = std::nullopt) {
    struct Awaiter {
      RequestWaiter& waiter;
      std::optional<std::chrono::milliseconds> delay;
      bool await_ready() const { return waiter.exchange().closed(); }
      bool await_suspend(std::coroutine_handle<> coroutine) const { return waiter.begin(coroutine, delay); }
      void await_resume() const { waiter.end(); }
    };
    return Awaiter{*this, delay};
  }

  const std::shared_ptr<Waker>& waker() const { return waker_; }
  /// A callback that calls wake().
  std::function<void()> callback() const {
    return [waker = waker_] { waker->wake(); };
  }

  /// Ends the wait when the server stops; the request must then end. Must be called by requests that do not
  /// end by themselves.
  void wake_on_stop();
  /// Returns true if the server has begun to stop.
  bool stopping() const { return context_.stopping; }

  Call& call() const { return call_; }
  http::Exchange& exchange() const { return *call_.exchange(); }

 private:
  bool begin(std::coroutine_handle<> coroutine, std::optional<std::chrono::milliseconds> delay);
  void end();
  void cancel_timer();

  const Context& context_;
  Call& call_;
  const std::shared_ptr<Waker> waker_;
  std::optional<http::Exchange::TimerId> timer_;
  std::optional<events::Subscription> stop_;
};

/// Ends the waits of all requests that have called wake_on_stop(); those that begin later check stopping().
void stop_waits(const Context& context);

}  // namespace divan::api
