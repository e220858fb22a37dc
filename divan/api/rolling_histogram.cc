#include "divan/api/rolling_histogram.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace divan::api {
namespace {

// The upper bound of the first bucket, in milliseconds, and the buckets by which bounds double.
constexpr double kFirstBound = 0.01;
constexpr double kPerOctave = 4;

constexpr double kRanks[] = {50, 75, 90, 95, 99, 99.9};
constexpr const char* kRankNames[] = {"50", "75", "90", "95", "99", "999"};

std::int64_t second_of(MonotonicTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

double upper_bound(std::size_t bucket) {
  return kFirstBound * std::exp2(static_cast<double>(bucket) / kPerOctave);
}
double lower_bound(std::size_t bucket) { return bucket == 0 ? 0 : upper_bound(bucket - 1); }

struct Bucket {
  double low, high;
  double count;
  double middle() const { return (low + high) / 2; }
};

// Interpolates within the bucket that has the rank.
double percentile(const std::vector<Bucket>& buckets, double total, double percent) {
  double rank = total * percent / 100;
  for (const auto& bucket : buckets) {
    if (rank <= bucket.count) return bucket.low + (bucket.high - bucket.low) * rank / bucket.count;
    rank -= bucket.count;
  }
  return buckets.empty() ? 0 : buckets.back().high;
}

struct Moments {
  double mean = 0, geometric = 0, harmonic = 0, variance = 0, deviation = 0, skewness = 0, kurtosis = 0;
};

Moments moments_of(const std::vector<Bucket>& buckets, double total) {
  Moments result;
  if (total == 0) return result;
  double logarithms = 0, inverses = 0;
  for (const auto& bucket : buckets) {
    result.mean += bucket.count * bucket.middle() / total;
    logarithms += bucket.count * std::log(bucket.middle());
    inverses += bucket.count / bucket.middle();
  }
  result.geometric = std::exp(logarithms / total);
  result.harmonic = total / inverses;
  double third = 0, fourth = 0;
  for (const auto& bucket : buckets) {
    const double difference = bucket.middle() - result.mean;
    result.variance += bucket.count * difference * difference / total;
    third += bucket.count * std::pow(difference, 3) / total;
    fourth += bucket.count * std::pow(difference, 4) / total;
  }
  result.deviation = std::sqrt(result.variance);
  // If all values are in one bucket.
  if (result.deviation < 1e-9) return result;
  result.skewness = third / std::pow(result.deviation, 3);
  result.kurtosis = fourth / std::pow(result.deviation, 4) - 3;
  return result;
}

}  // namespace

void RollingHistogram::add(Duration value, MonotonicTime now) {
  const std::int64_t second = second_of(now);
  Slot& slot = slots_[static_cast<std::size_t>(second) % kSeconds];
  std::int64_t counted = slot.second;
  if (counted < second && slot.second.compare_exchange_strong(counted, second)) {
    for (auto& count : slot.counts) count.store(0, std::memory_order_relaxed);
  }
  const double ms = std::chrono::duration<double, std::milli>(value).count();
  const double bucket = ms <= kFirstBound ? 0 : std::ceil(std::log2(ms / kFirstBound) * kPerOctave);
  slot.counts[static_cast<std::size_t>(std::min<double>(bucket, kBuckets - 1))].fetch_add(
      1, std::memory_order_relaxed);
}

std::string RollingHistogram::summary(MonotonicTime now) const {
  const std::int64_t oldest = second_of(now) - static_cast<std::int64_t>(kSeconds) + 1;
  std::array<std::uint64_t, kBuckets> counts{};
  for (const auto& slot : slots_) {
    if (slot.second < oldest) continue;
    for (std::size_t i = 0; i < kBuckets; ++i) counts[i] += slot.counts[i].load(std::memory_order_relaxed);
  }
  std::vector<Bucket> buckets;
  double total = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    if (counts[i] == 0) continue;
    buckets.push_back({lower_bound(i), upper_bound(i), static_cast<double>(counts[i])});
    total += buckets.back().count;
  }
  const Moments moments = moments_of(buckets, total);
  std::string percentiles, bins;
  for (std::size_t i = 0; i < std::size(kRanks); ++i)
    percentiles +=
        fmt::format("{}[{},{}]", i == 0 ? "" : ",", kRankNames[i], percentile(buckets, total, kRanks[i]));
  for (const auto& bucket : buckets)
    bins += fmt::format("{}[{},{}]", bins.empty() ? "" : ",", bucket.low, bucket.count);
  return fmt::format(
      R"({{"min":{},"max":{},"arithmetic_mean":{},"geometric_mean":{},"harmonic_mean":{},"median":{},)"
      R"("variance":{},"standard_deviation":{},"skewness":{},"kurtosis":{},"percentile":[{}],)"
      R"("histogram":[{}],"n":{}}})",
      buckets.empty() ? 0 : buckets.front().low, buckets.empty() ? 0 : buckets.back().high, moments.mean,
      moments.geometric, moments.harmonic, percentile(buckets, total, 50), moments.variance,
      moments.deviation, moments.skewness, moments.kurtosis, percentiles, bins.empty() ? "[0,0]" : bins,
      total);
}

}  // namespace divan::api
