// Consecutive failures of work that a thread retries.
#pragma once

#include <atomic>
#include <bit>
#include <exception>
#include <string_view>

#include "divan/base/clock.h"
#include "divan/base/log.h"

namespace divan::updates {

/// How long a thread waits after a failure.
inline constexpr Duration kRetryDelay = std::chrono::seconds(5);

/// Counts consecutive failures, and logs the first, second, fourth and so on, and the next success. So a
/// store that cannot be reached for hours causes a few lines. Not thread-safe, except total().
class Failures {
 public:
  /// `what` begins the log lines, such as "The updates feed cannot be written".
  explicit Failures(std::string_view what) : what_(what) {}

  /// Runs `fn`; returns false if it threw anything.
  template <class Fn>
  bool run(Fn&& fn) {
    try {
      fn();
    } catch (const std::exception& error) {
      add(error.what());
      return false;
    } catch (...) {
      add("an unknown error");
      return false;
    }
    if (in_row_ > 0) log::info("{}: resolved after {} failures.", what_, in_row_);
    in_row_ = 0;
    return true;
  }

  std::uint64_t total() const { return total_; }

 private:
  void add(std::string_view why) {
    ++total_;
    ++in_row_;
    if (std::has_single_bit(in_row_)) log::error("{}; this is tried again: {}", what_, why);
  }

  const std::string_view what_;
  std::uint64_t in_row_ = 0;
  std::atomic<std::uint64_t> total_ = 0;
};

}  // namespace divan::updates
