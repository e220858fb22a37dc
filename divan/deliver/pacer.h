// How many requests may be sent to the receiver of a type at this moment: its concurrency and rate, and a
// circuit breaker, by which a receiver that is down is tried less and less often.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "divan/base/clock.h"

namespace divan::deliver {

/// Not thread-safe.
class Pacer {
 public:
  struct Limits {
    std::size_t concurrency = 10;
    std::optional<double> per_second{};
    bool operator==(const Limits&) const = default;
  };
  enum class State {
    closed,     // requests are sent
    open,       // none until retry_at()
    half_open,  // one, whose response decides
    paused,     // none until retry_at(), as the receiver has requested
  };

  /// Of later requests.
  void set_limits(const Limits& limits, MonotonicTime now);

  /// The number of requests that may begin now.
  std::size_t allowed(MonotonicTime now);
  /// When there may be more, if none may begin now for a reason that passes with time.
  std::optional<MonotonicTime> next_time(MonotonicTime now) const;

  /// A request begins, if allowed() is not 0. Returns the period in which it begins, for
  /// end(): each opening of the circuit begins a new one.
  std::uint64_t begin();
  /// It has ended. `is_receiver_down`: by a failure of the receiver.
  void end(std::uint64_t period, bool is_receiver_down, MonotonicTime now);
  /// It has ended, and its end says nothing of the receiver.
  void drop(std::uint64_t period);
  /// The receiver requests a pause.
  void pause(Duration duration, MonotonicTime now);

  /// Closes the circuit breaker, and ends a pause: its receiver may be another one, or be repaired.
  void close();

  State state(MonotonicTime now) const;
  MonotonicTime retry_at() const { return retry_at_; }
  std::size_t running() const { return running_; }
  /// In succession.
  std::int64_t failures() const { return failures_; }

 private:
  void refill(MonotonicTime now);

  Limits limits_{};
  std::size_t running_ = 0;
  std::uint64_t period_ = 0;     // a new one begins whenever the circuit is opened,
  std::size_t running_now_ = 0;  // and the requests that have begun in it
  double tokens_ = 0;            // requests that the rate allows now
  MonotonicTime refilled_at_{};
  std::int64_t failures_ = 0;
  Duration pause_{};  // the last one of the circuit breaker; 0: it is closed
  bool is_requested_pause_ = false;
  MonotonicTime retry_at_{};
};

/// "open", "half_open" and so on.
std::string state_name(Pacer::State state);

}  // namespace divan::deliver
