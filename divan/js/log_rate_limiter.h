// How much strangers' functions may write into the server's log.
//
// Each writer (a design document of a database) has so many lines a second, and may save up for a burst. What
// is too much is counted, and the next line that may be written says how many are missing before it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "divan/base/clock.h"

namespace divan::js {

/// Not thread-safe.
class LogRateLimiter {
 public:
  /// Lines that a writer may write at once when it was silent for long.
  static constexpr double kBurst = 100;
  /// Writers that are remembered; the budget of one that is forgotten begins anew.
  static constexpr std::size_t kMaxWriters = 1000;

  explicit LogRateLimiter(double lines_per_second) : rate_(lines_per_second) {}

  void set_rate(double lines_per_second) { rate_ = lines_per_second; }

  /// Whether this writer may write a line now: nullopt if not, else how many it lacks since its last one.
  std::optional<std::uint64_t> take(const std::string& writer, MonotonicTime now);
  /// Lines that were lost on the way here.
  void lose(const std::string& writer, std::uint64_t lines, MonotonicTime now);

 private:
  struct Writer {
    double lines = kBurst;
    MonotonicTime since;
    std::uint64_t lost = 0;
  };
  Writer& find(const std::string& name, MonotonicTime now);

  double rate_;
  std::map<std::string, Writer> writers_;
};

}  // namespace divan::js
