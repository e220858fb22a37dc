#include "divan/api/task.h"

#include "divan/api/errors.h"
#include "divan/base/check.h"
#include "divan/base/log.h"

namespace divan::api {
namespace {

// Time after which a task retries if the pool is full.
constexpr std::chrono::milliseconds kBusyPause{20};

// The bus's channel that announces that the server stops.
constexpr std::string_view kStopChannel = "/_stop";

}  // namespace

void stop_tasks(const Context& context) {
  // In this order, and the other way round in tasks: a task that subscribes too late to be woken reads the
  // flag.
  context.stopping = true;
  context.catalog.bus().publish(kStopChannel, [] { return events::Event(); });
}

void Task::wake_on_stop() {
  stop_.emplace(context_.catalog.bus().subscribe(kStopChannel, {.max_events = 0, .notify = waker()}));
}

void Task::start() {
  // Keeps the task alive until the response is complete or the connection is lost.
  exchange().on_close([self = shared_from_this()] {
    std::lock_guard lock(self->mutex_);
    if (self->state_ == State::waiting) self->state_ = State::done;
  });
  exchange().on_half_close(waker());
  run();
}

void Task::wake() {
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::running) state_ = State::running_and_woken;
    if (state_ != State::waiting) return;
    state_ = State::queued;
  }
  submit();
}

void Task::wake_here() {
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::running) state_ = State::running_and_woken;
    if (state_ != State::waiting) return;
    state_ = State::running;
  }
  run();
}

void Task::submit() {
  const auto self = shared_from_this();
  const bool taken = context_.pool.submit([self] {
    {
      std::lock_guard lock(self->mutex_);
      DIVAN_CHECK(self->state_ == State::queued, "a task that was not queued begins a step");
      self->state_ = State::running;
    }
    self->run();
  });
  if (taken) return;
  exchange().after(kBusyPause, [self] { self->submit(); });
}

void Task::run() {
  for (;;) {
    bool done = true;
    if (!exchange().closed()) {
      try {
        done = step();
      } catch (const Error& error) { fail(error); } catch (const kv::Error& error) {
        fail(http_error(error));
      } catch (const std::exception& error) {
        log::error("{} {}: {}", call_->method(), exchange().request().target(), error.what());
        fail(internal_error("Internal error; see the server's log."));
      }
    }
    std::lock_guard lock(mutex_);
    DIVAN_CHECK(state_ == State::running || state_ == State::running_and_woken,
                "a task that was not running ends a step");
    if (done) {
      state_ = State::done;
      return;
    }
    if (state_ == State::running) {
      state_ = State::waiting;
      return;
    }
    state_ = State::running;
  }
}

void Task::fail(const Error& error) {
  if (!exchange().responded()) {
    // Not logged if the server stops: thousands of tasks may fail for that reason.
    if (stopping() && error.status() == 503) return exchange().respond(http::error_response(error));
    exchange().fail(error);
    return;
  }
  // Releases the exchange, which closes the connection, so that the client detects the incomplete response.
  exchange().on_close([] {});
  log::warning("{} {}: the response was aborted: {}", call_->method(), exchange().request().target(),
               error.what());
}

void Task::wake_after(std::chrono::milliseconds delay) {
  cancel_timer();
  timer_ = exchange().after(delay, waker());
}

void Task::cancel_timer() {
  if (timer_) exchange().cancel(*timer_);
  timer_.reset();
}

std::function<void()> Task::waker() {
  return [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->wake();
  };
}

}  // namespace divan::api
