#include "divan/deliver/pacer.h"

#include <algorithm>
#include <cmath>

#include "divan/base/check.h"

namespace divan::deliver {
namespace {

constexpr std::int64_t kFailuresToOpen = 5;
constexpr Duration kFirstPause = std::chrono::seconds(1);
constexpr Duration kLongestPause = std::chrono::minutes(1);

double seconds_of(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

void Pacer::set_limits(const Limits& limits, MonotonicTime now) {
  if (limits == limits_) return;
  refill(now);
  // A new rate begins with one request.
  if (limits.per_second != limits_.per_second) {
    tokens_ = 1;
    refilled_at_ = now;
  }
  limits_ = limits;
}

void Pacer::refill(MonotonicTime now) {
  if (!limits_.per_second) return;
  // The requests of one second, or one, are sent at once after a pause.
  const double most = std::max(1.0, *limits_.per_second);
  tokens_ = std::min(most, tokens_ + seconds_of(now - refilled_at_) * *limits_.per_second);
  refilled_at_ = now;
}

std::size_t Pacer::allowed(MonotonicTime now) {
  if (now < retry_at_) return 0;
  std::size_t most = limits_.concurrency > running_ ? limits_.concurrency - running_ : 0;
  // The response to a single request decides. Those from before the opening do not.
  if (pause_ > Duration::zero()) most = running_now_ > 0 ? 0 : std::min<std::size_t>(most, 1);
  if (limits_.per_second) {
    refill(now);
    most = std::min(most, static_cast<std::size_t>(tokens_));
  }
  return most;
}

std::optional<MonotonicTime> Pacer::next_time(MonotonicTime now) const {
  if (now < retry_at_) return retry_at_;
  if (!limits_.per_second || tokens_ >= 1) return std::nullopt;
  return now + std::chrono::ceil<std::chrono::milliseconds>(
                   std::chrono::duration<double>((1 - tokens_) / *limits_.per_second));
}

std::uint64_t Pacer::begin() {
  ++running_;
  ++running_now_;
  if (limits_.per_second) tokens_ -= 1;
  return period_;
}

void Pacer::end(std::uint64_t period, bool is_receiver_down, MonotonicTime now) {
  drop(period);
  if (!is_receiver_down) {
    failures_ = 0;
    pause_ = {};
    return;
  }
  ++failures_;
  // Those that were under way when it opened say nothing new.
  if (failures_ < kFailuresToOpen || period != period_) return;
  pause_ = pause_ == Duration::zero() ? kFirstPause : std::min(2 * pause_, kLongestPause);
  retry_at_ = now + pause_;
  is_requested_pause_ = false;
  ++period_;
  running_now_ = 0;
}

void Pacer::drop(std::uint64_t period) {
  DIVAN_CHECK(running_ > 0 && running_now_ <= running_, "{} requests are under way, {} of this period",
              running_, running_now_);
  --running_;
  if (period == period_) --running_now_;
}

void Pacer::pause(Duration duration, MonotonicTime now) {
  const auto until = now + std::min(duration, kLongestPause);
  if (until <= retry_at_) return;
  retry_at_ = until;
  is_requested_pause_ = true;
}

void Pacer::close() {
  failures_ = 0;
  pause_ = {};
  retry_at_ = {};
}

Pacer::State Pacer::state(MonotonicTime now) const {
  if (now < retry_at_) return is_requested_pause_ ? State::paused : State::open;
  return pause_ > Duration::zero() ? State::half_open : State::closed;
}

std::string state_name(Pacer::State state) {
  switch (state) {
    case Pacer::State::open: return "open";
    case Pacer::State::half_open: return "half_open";
    case Pacer::State::paused: return "paused";
    case Pacer::State::closed: break;
  }
  return "closed";
}

}  // namespace divan::deliver
