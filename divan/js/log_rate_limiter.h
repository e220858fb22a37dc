// Limits how much untrusted functions write to the server's log.
//
// A token bucket per writer (a design document of a database). Lines over the limit are counted, and the next
// line that is written reports how many were dropped before it.
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
  /// The size of a writer's bucket, in lines.
  static constexpr double kBurst = 100;
  /// The most writers that are tracked; the bucket of an evicted writer starts full again.
  static constexpr std::size_t kMaxWriters = 1000;

  explicit LogRateLimiter(double lines_per_second) : rate_(lines_per_second) {}

  void set_rate(double lines_per_second) { rate_ = lines_per_second; }

  /// Takes a token for one line. Returns the number of lines dropped since the writer's last one; nullopt if
  /// the writer is over its limit.
  std::optional<std::uint64_t> take(const std::string& writer, MonotonicTime now);
  /// Counts lines that were dropped before they reached this limiter.
  void add_dropped(const std::string& writer, std::uint64_t lines, MonotonicTime now);

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
