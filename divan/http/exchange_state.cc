#include "divan/http/exchange_state.h"

#include <algorithm>
#include <utility>

#include "divan/base/check.h"
#include "divan/base/log.h"

namespace divan::http {
namespace {

void run(const std::function<void()>& callback) {
  if (!callback) return;
  try {
    callback();
  } catch (const std::exception& e) { log::error("A callback of an HTTP exchange failed: {}", e.what()); }
}

}  // namespace

void ExchangeState::schedule(std::unique_lock<Mutex> lock) {
  if (scheduled_ || (over_ && !callbacks_.close)) return;
  scheduled_ = true;
  lock.unlock();
  if (!mailbox_->push(shared_from_this())) finish();
}

void ExchangeState::begin(std::unique_lock<Mutex> lock, Phase next, Response response) {
  if (phase_ != Phase::waiting) {
    log::error("Ignored a second response to {} {}.", request.method(), request.path());
    return;
  }
  phase_ = next;
  if (over_) return;
  work_.stream = next == Phase::streaming;
  work_.response = std::move(response);
  auto& extra = extra_headers_;
  std::move(extra.begin(), extra.end(), std::back_inserter(work_.response->headers));
  extra.clear();
  work_.ended = !work_.stream;
  schedule(std::move(lock));
}

void ExchangeState::read_body(std::size_t bytes, Callback callback) {
  std::unique_lock lock(mutex_);
  if (over_) return;
  std::swap(callbacks_.body, callback);
  wanted_body_ = bytes;
  schedule(std::move(lock));
}

StreamedBodyPart ExchangeState::take_streamed_body() {
  std::lock_guard lock(mutex_);
  if (body_error_) throw Error(*body_error_);
  return std::exchange(body_, {.is_last = body_.is_last});
}

std::size_t ExchangeState::wanted_body() const {
  std::lock_guard lock(mutex_);
  return wanted_body_;
}

void ExchangeState::add_body(std::string data, bool is_last) {
  Callback callback;
  {
    std::lock_guard lock(mutex_);
    wanted_body_ -= std::min(wanted_body_, data.size());
    if (body_.data.empty()) {
      body_.data = std::move(data);
    } else {
      const std::size_t size = body_.data.size() + data.size();
      if (size > body_.data.capacity()) {
        // A string that grows takes at least twice as much memory, which may be more than is wanted.
        std::string larger;
        larger.reserve(std::min(2 * size, size + wanted_body_));
        larger += body_.data;
        body_.data = std::move(larger);
      }
      body_.data += data;
    }
    body_.is_last = is_last;
    if (wanted_body_ > 0 && !is_last) return;
    wanted_body_ = 0;
    callback.swap(callbacks_.body);
  }
  run(callback);
}

void ExchangeState::fail_body(const Error& error) {
  Callback callback;
  {
    std::lock_guard lock(mutex_);
    body_error_ = error;
    wanted_body_ = 0;
    callback.swap(callbacks_.body);
  }
  run(callback);
}

void ExchangeState::set_extra_headers(Headers headers) {
  std::lock_guard lock(mutex_);
  extra_headers_ = std::move(headers);
}

void ExchangeState::respond(Response response) {
  begin(std::unique_lock(mutex_), Phase::complete, std::move(response));
}

void ExchangeState::start(Response head) {
  auto first = std::move(head.body);
  begin(std::unique_lock(mutex_), Phase::streaming, std::move(head));
  if (!first.empty()) write(std::move(first));
}

bool ExchangeState::responded() const {
  std::lock_guard lock(mutex_);
  return phase_ != Phase::waiting;
}

void ExchangeState::write(std::string bytes) {
  std::unique_lock lock(mutex_);
  if (over_ || work_.cut || phase_ != Phase::streaming || bytes.empty()) return;
  unsent_ += bytes.size();
  if (unsent_ > max_unsent_) {
    work_.cut = true;
    work_.data = {};
  } else if (work_.data.empty()) {
    work_.data = std::move(bytes);
  } else {
    work_.data += bytes;
  }
  schedule(std::move(lock));
}

void ExchangeState::end() {
  std::unique_lock lock(mutex_);
  if (phase_ != Phase::streaming) return;
  phase_ = Phase::complete;
  work_.ended = true;
  schedule(std::move(lock));
}

std::size_t ExchangeState::unsent() const {
  std::lock_guard lock(mutex_);
  return over_ ? 0 : unsent_;
}

void ExchangeState::on_drained(Callback callback) {
  std::unique_lock lock(mutex_);
  if (over_) return;
  std::swap(callbacks_.drained, callback);
  schedule(std::move(lock));
}

void ExchangeState::on_half_close(Callback callback) {
  std::unique_lock lock(mutex_);
  if (over_) return;
  std::swap(callbacks_.half_close, callback);
  if (half_closed_) schedule(std::move(lock));
}

bool ExchangeState::half_closed() const {
  std::lock_guard lock(mutex_);
  return half_closed_;
}

void ExchangeState::on_close(Callback callback) {
  std::unique_lock lock(mutex_);
  if (over_ && !lost_) return;
  std::swap(callbacks_.close, callback);
  if (lost_) schedule(std::move(lock));
}

bool ExchangeState::closed() const {
  std::lock_guard lock(mutex_);
  return lost_;
}

ExchangeState::TimerId ExchangeState::after(std::chrono::milliseconds delay, Callback callback) {
  std::unique_lock lock(mutex_);
  const auto id = ++last_timer_;
  if (over_) return id;
  callbacks_.timers.emplace(id, std::move(callback));
  work_.new_timers.push_back({id, delay});
  schedule(std::move(lock));
  return id;
}

void ExchangeState::cancel(TimerId timer) {
  std::unique_lock lock(mutex_);
  const auto callback = callbacks_.timers.extract(timer);
  if (!callback) return;
  work_.cancelled_timers.push_back(timer);
  schedule(std::move(lock));
}

void ExchangeState::abandon() {
  std::unique_lock lock(mutex_);
  if (phase_ == Phase::complete) return;
  if (phase_ == Phase::waiting) {
    const auto error = internal_error("The handler did not respond to the request.");
    if (!over_ && !lost_) log_failure(request, error);
    begin(std::move(lock), Phase::complete, error_response(error));
    return;
  }
  phase_ = Phase::complete;
  work_.cut = true;
  schedule(std::move(lock));
}

ExchangeState::Work ExchangeState::take(bool with_output) {
  std::lock_guard lock(mutex_);
  scheduled_ = false;
  if (with_output) return std::exchange(work_, Work{.cut = work_.cut, .stream = work_.stream});
  Work work;
  work.new_timers.swap(work_.new_timers);
  work.cancelled_timers.swap(work_.cancelled_timers);
  work.cut = work_.cut;
  return work;
}

void ExchangeState::sent(std::size_t bytes) {
  std::lock_guard lock(mutex_);
  DIVAN_CHECK(bytes <= unsent_, "{} bytes of a stream were sent, and {} were unsent", bytes, unsent_);
  unsent_ -= bytes;
}

void ExchangeState::drained() {
  Callback callback;
  {
    std::lock_guard lock(mutex_);
    if (unsent_ == 0) callback.swap(callbacks_.drained);
  }
  run(callback);
}

void ExchangeState::run_timer(TimerId id) {
  std::map<TimerId, Callback>::node_type timer;
  {
    std::lock_guard lock(mutex_);
    timer = callbacks_.timers.extract(id);
  }
  if (timer) run(timer.mapped());
}

void ExchangeState::half_close() {
  Callback callback;
  {
    std::lock_guard lock(mutex_);
    half_closed_ = true;
    callback.swap(callbacks_.half_close);
    if (phase_ == Phase::complete) return;
  }
  run(callback);
}

void ExchangeState::served_late() {
  {
    std::lock_guard lock(mutex_);
    scheduled_ = false;
  }
  call_on_close();
}

void ExchangeState::call_on_close() {
  Callback callback;
  {
    std::lock_guard lock(mutex_);
    if (lost_) callback.swap(callbacks_.close);
    if (phase_ == Phase::complete) return;
  }
  run(callback);
}

void ExchangeState::finish() {
  Callbacks dropped;
  std::lock_guard lock(mutex_);
  over_ = true;
  std::swap(dropped, callbacks_);
}

void ExchangeState::lose() {
  {
    std::lock_guard lock(mutex_);
    lost_ = half_closed_ = true;
  }
  call_on_close();
  finish();
}

}  // namespace divan::http
