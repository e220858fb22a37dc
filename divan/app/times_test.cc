#include "divan/app/times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "divan/base/error.h"

namespace divan::app {
namespace {

using std::chrono::milliseconds;

TEST(Times, DurationsAreNumbersWithUnits) {
  EXPECT_EQ(parse_duration("500ms"), milliseconds(500));
  EXPECT_EQ(parse_duration("10s"), milliseconds(10'000));
  EXPECT_EQ(parse_duration("5m"), milliseconds(300'000));
  EXPECT_EQ(parse_duration("1h30m"), milliseconds(5'400'000));
  EXPECT_EQ(parse_duration("7d"), milliseconds(604'800'000));
  EXPECT_EQ(parse_duration("0s"), milliseconds(0));
  EXPECT_EQ(parse_duration("36525d"), milliseconds(36'525LL * 86'400'000));
}

TEST(Times, InvalidDurationsAreRejected) {
  for (const auto* text : {"", "10", "m", "10x", "-1s", "1.5h", "10 m", "1h30", "s10", "36526d", "36525d1ms",
                           "99999999999999999999ms", "9223372036854775807d", "10M"}) {
    EXPECT_THROW(parse_duration(text), Error) << text;
  }
}

TEST(Times, DurationsAreShownInTheirLargestUnits) {
  EXPECT_EQ(format_duration(milliseconds(0)), "0s");
  EXPECT_EQ(format_duration(milliseconds(30'000)), "30s");
  EXPECT_EQ(format_duration(milliseconds(60'000)), "1m");
  EXPECT_EQ(format_duration(milliseconds(86'400'000)), "1d");
  EXPECT_EQ(format_duration(milliseconds(90'061'001)), "1d1h1m1s1ms");
}

RC_GTEST_PROP(Times, FormattedDurationsAreParsed, ()) {
  const milliseconds duration(*rc::gen::inRange<std::int64_t>(0, 36'525LL * 86'400'000));
  RC_ASSERT(parse_duration(format_duration(duration)) == duration);
}

TEST(Times, TimesAreParsedAsInRfc3339) {
  constexpr std::int64_t kEight = 1'896'076'800'000;
  EXPECT_EQ(parse_time("2030-01-31T08:00:00Z"), kEight);
  EXPECT_EQ(parse_time("2030-01-31T08:00Z"), kEight);
  EXPECT_EQ(parse_time("2030-01-31 08:00"), kEight);
  EXPECT_EQ(parse_time("2030-01-31t08:00:00z"), kEight);
  EXPECT_EQ(parse_time("2030-01-31T09:30:00+01:30"), kEight);
  EXPECT_EQ(parse_time("2030-01-30T22:00-10:00"), kEight);
  EXPECT_EQ(parse_time("2030-01-31"), kEight - 8 * 3'600'000);
  EXPECT_EQ(parse_time("2030-01-31T08:00:01.25Z"), kEight + 1'250);
  EXPECT_EQ(parse_time("1970-01-01"), 0);
  EXPECT_EQ(parse_time("2028-02-29"), 1'835'395'200'000);
}

TEST(Times, InvalidTimesAreRejected) {
  for (const auto* text : {"",
                           "tomorrow",
                           "2030-1-31",
                           "2030-02-30",
                           "2030-13-01",
                           "2030-00-10",
                           "2029-02-29",
                           "2030-01-31T",
                           "2030-01-31T8:00",
                           "2030-01-31T24:00",
                           "2030-01-31T08:60",
                           "2030-01-31T08:00:60",
                           "2030-01-31T08:00:00.",
                           "2030-01-31T08:00:00.1234",
                           "2030-01-31T08:00:00+1",
                           "2030-01-31T08:00:00 Z",
                           "2030-01-31T08:00:00Z ",
                           "1969-12-31T23:59:59Z",
                           "1700000000000",
                           "20300-01-31"}) {
    EXPECT_THROW(parse_time(text), Error) << text;
  }
}

TEST(Times, TimesAreShownInUtc) {
  EXPECT_EQ(format_time(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(format_time(1'896'076'800'999), "2030-01-31T08:00:00Z");
  EXPECT_EQ(format_time(253'402'300'799'999), "9999-12-31T23:59:59Z");
  EXPECT_EQ(format_time(253'402'300'800'000), "253402300800000");
  EXPECT_EQ(format_time(-1), "-1");
}

RC_GTEST_PROP(Times, FormattedTimesAreParsed, ()) {
  const auto time = *rc::gen::inRange<std::int64_t>(0, 253'402'300'800);
  RC_ASSERT(parse_time(format_time(time * 1000)) == time * 1000);
}

}  // namespace
}  // namespace divan::app
