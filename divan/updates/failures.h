// Failures in a row of something that a thread tries again and again.
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

/// Counts them, and logs the first, second, fourth and so on of a row, and its end: a store that is gone for
/// hours gives a few lines. One thread; total() is thread-safe.
class Failures {
 public:
  /// `what` cannot be done: "The updates feed cannot be written".
  explicit Failures(std::string_view what) : what_(what) {}

  /// Runs it; answers whether it threw nothing, of whatever kind.
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
    if (in_row_ > 0) log::info("{}: that is over, after {} failures.", what_, in_row_);
    in_row_ = 0;
    return true;
  }

  std::uint64_t total() const { return total_; }

 private:
  void add(std::string_view why) {
    ++total_;
    ++in_row_;
    if (std::has_single_bit(in_row_)) log::error("{}, and is tried again: {}", what_, why);
  }

  const std::string_view what_;
  std::uint64_t in_row_ = 0;
  std::atomic<std::uint64_t> total_ = 0;
};

}  // namespace divan::updates
