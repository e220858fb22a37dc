#include "divan/api/request_waiter.h"

namespace divan::api {
namespace {

// The bus's channel that announces that the server stops.
constexpr std::string_view kStopChannel = "/_stop";

}  // namespace

void stop_waits(const Context& context) {
  // In this order, and the other way round in requests: a request that subscribes too late to be woken reads
  // the flag.
  context.stopping = true;
  context.catalog.bus().publish(kStopChannel, [] { return events::Event(); });
}

void Waker::wake() {
  if (state_.exchange(State::woken) == State::waiting) executor_.resume(coroutine_);
}

void Waker::wake_here() {
  if (state_.exchange(State::woken) == State::waiting) executor_.resume_here(coroutine_);
}

RequestWaiter::RequestWaiter(const Context& context, Call& call)
    : context_(context), call_(call), waker_(std::make_shared<Waker>(call.executor())) {
  exchange().on_close(callback());
  exchange().on_half_close(callback());
}

void RequestWaiter::wake_on_stop() {
  stop_.emplace(context_.catalog.bus().subscribe(kStopChannel, {.max_events = 0, .notify = callback()}));
}

bool RequestWaiter::begin(std::coroutine_handle<> coroutine, std::optional<std::chrono::milliseconds> delay) {
  if (delay) timer_ = exchange().after(*delay, callback());
  waker_->coroutine_ = coroutine;
  // From here on the coroutine may continue on another thread.
  auto expected = Waker::State::running;
  return waker_->state_.compare_exchange_strong(expected, Waker::State::waiting);
}

void RequestWaiter::end() {
  waker_->state_ = Waker::State::running;
  cancel_timer();
  check_connected(exchange());
}

void RequestWaiter::cancel_timer() {
  if (timer_) exchange().cancel(*timer_);
  timer_.reset();
}

}  // namespace divan::api
