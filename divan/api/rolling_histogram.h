// The distribution of values of the last seconds.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "divan/base/clock.h"

namespace divan::api {

/// Counts durations of the last ten seconds in buckets whose bounds grow by a factor of 2^(1/4), so that the
/// error of what is computed from them is at most 10 %. Durations above 167 s count as such. Thread-safe,
/// without locks: a duration that is added while another thread begins a new second may be lost.
class RollingHistogram {
 public:
  void add(Duration value, MonotonicTime now);

  /// A JSON object with CouchDB's members (min, max, arithmetic_mean, median, percentile, n ...), in
  /// milliseconds. The second that has just begun is included. Without any durations, all members are 0.
  std::string summary(MonotonicTime now) const;

 private:
  static constexpr std::size_t kSeconds = 11;  // ten complete ones, and the present one
  static constexpr std::size_t kBuckets = 98;

  struct Slot {
    std::atomic<std::int64_t> second = -1;
    std::array<std::atomic<std::uint64_t>, kBuckets> counts{};
  };

  std::array<Slot, kSeconds> slots_;
};

}  // namespace divan::api
