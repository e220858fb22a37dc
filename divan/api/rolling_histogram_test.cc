#include "divan/api/rolling_histogram.h"

#include <gtest/gtest.h>

#include "divan/base/json.h"

namespace divan::api {
namespace {

using namespace std::chrono_literals;

double number_of(const RollingHistogram& histogram, const Clock& clock, std::string_view name) {
  const auto summary = histogram.summary(clock.now());
  const auto text = json::member(summary, name);
  return text ? std::stod(std::string(*text)) : -1;
}

TEST(RollingHistogram, HasTheMomentsOfItsValues) {
  ManualClock clock;
  clock.advance(100s);
  RollingHistogram histogram;
  for (int i = 0; i < 90; ++i) histogram.add(1ms, clock.now());
  for (int i = 0; i < 10; ++i) histogram.add(100ms, clock.now());
  const auto near = [&](std::string_view name, double expected) {
    EXPECT_NEAR(number_of(histogram, clock, name), expected, expected * 0.1) << name;
  };
  EXPECT_EQ(number_of(histogram, clock, "n"), 100);
  near("arithmetic_mean", 10.9);
  near("geometric_mean", 1.585);
  near("harmonic_mean", 1.11);
  near("median", 1);
  near("standard_deviation", 29.7);
  near("skewness", 2.67);
  near("kurtosis", 5.11);
  EXPECT_LE(number_of(histogram, clock, "min"), 1);
  EXPECT_GE(number_of(histogram, clock, "max"), 100);
  EXPECT_NE(histogram.summary(clock.now()).find("\"percentile\":[[50,"), std::string::npos);
}

TEST(RollingHistogram, ForgetsValuesAfterTenSeconds) {
  ManualClock clock;
  clock.advance(100s);
  RollingHistogram histogram;
  histogram.add(1ms, clock.now());
  clock.advance(10s);
  histogram.add(2ms, clock.now());
  EXPECT_EQ(number_of(histogram, clock, "n"), 2);
  clock.advance(1s);
  EXPECT_EQ(number_of(histogram, clock, "n"), 1);
  histogram.add(3ms, clock.now());  // in the slot of the first value
  EXPECT_EQ(number_of(histogram, clock, "n"), 2);
  clock.advance(100s);
  EXPECT_EQ(number_of(histogram, clock, "n"), 0);
  EXPECT_EQ(number_of(histogram, clock, "arithmetic_mean"), 0);
}

TEST(RollingHistogram, TakesAnyDuration) {
  ManualClock clock;
  clock.advance(100s);
  RollingHistogram histogram;
  for (const Duration duration : {Duration(-1s), Duration(0), Duration(1ns), Duration(24h)})
    histogram.add(duration, clock.now());
  EXPECT_EQ(number_of(histogram, clock, "n"), 4);
  EXPECT_EQ(number_of(histogram, clock, "min"), 0);
  EXPECT_GT(number_of(histogram, clock, "max"), 100'000);
}

}  // namespace
}  // namespace divan::api
