#include "divan/jobs/cron.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <chrono>

#include "divan/base/error.h"

namespace divan::jobs {
namespace {

using namespace std::chrono;

// Parses a minute of the local calendar, such as "2026-03-01 12:30".
LocalMinute minute_at(const std::string& text) {
  int year = 0;
  unsigned month = 0, day = 0, hour = 0, minute = 0;
  if (std::sscanf(text.c_str(), "%d-%u-%u %u:%u", &year, &month, &day, &hour, &minute) != 5)
    throw std::runtime_error(text);
  return sys_days(std::chrono::year(year) / month / day).time_since_epoch().count() * 1440LL + hour * 60 +
         minute;
}

std::string shown_minute(std::optional<LocalMinute> minute) {
  if (!minute) return "never";
  const auto day = floor<days>(minutes(*minute));
  const year_month_day date{sys_days(day)};
  const auto of_day = (minutes(*minute) - day).count();
  return fmt::format("{}-{:02}-{:02} {:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), of_day / 60,
                     of_day % 60);
}

std::string next(std::string_view expression, const std::string& from) {
  return shown_minute(Cron::parse(expression).next(minute_at(from), minute_at("9998-01-01 00:00")));
}

std::string cron_error(std::string_view expression) {
  try {
    Cron::parse(expression);
  } catch (const Error& error) { return error.status() == 400 ? error.reason() : "status"; }
  return "";
}

TEST(Cron, NextMinute) {
  const std::string monday = "2026-03-02 12:30";
  EXPECT_EQ(next("* * * * *", monday), "2026-03-02 12:30");
  EXPECT_EQ(next("*/5 * * * *", "2026-03-02 12:31"), "2026-03-02 12:35");
  EXPECT_EQ(next("1-59/20 * * * *", "2026-03-02 12:42"), "2026-03-02 13:01");
  EXPECT_EQ(next("15,45 9-17 * * *", "2026-03-02 17:46"), "2026-03-03 09:15");
  EXPECT_EQ(next("0 8-18/4 * * *", "2026-03-02 12:01"), "2026-03-02 16:00");
  EXPECT_EQ(next("59 23 31 12 *", monday), "2026-12-31 23:59");
  EXPECT_EQ(next("0 0 29 feb *", monday), "2028-02-29 00:00");
  EXPECT_EQ(next("0 0 31 * *", "2026-04-01 00:00"), "2026-05-31 00:00");
  EXPECT_EQ(next("  0\t7  * * 1-5 ", "2026-03-06 07:01"), "2026-03-09 07:00");
}

TEST(Cron, Names) {
  EXPECT_EQ(next("0 0 * * mon", "2026-03-03 00:00"), "2026-03-09 00:00");
  EXPECT_EQ(next("0 0 * * FRI-Sun", "2026-03-08 00:01"), "2026-03-13 00:00");
  EXPECT_EQ(next("0 0 1 jan,Jul *", "2026-03-03 00:00"), "2026-07-01 00:00");
  for (const std::string_view sunday :
       {"0 0 * * 0", "0 0 * * 7", "0 0 * * sun", "0 0 * * 7-7", "0 0 * * sun-sun"})
    EXPECT_EQ(next(sunday, "2026-03-02 00:00"), "2026-03-08 00:00") << sunday;
  EXPECT_EQ(next("0 0 * * 5-7", "2026-03-08 00:00"), "2026-03-08 00:00");
  EXPECT_EQ(next("0 0 * * sun-tue", "2026-03-04 00:00"), "2026-03-08 00:00");
}

TEST(Cron, Shorthands) {
  const std::string from = "2026-03-04 12:30";
  EXPECT_EQ(next("@hourly", from), "2026-03-04 13:00");
  EXPECT_EQ(next("@daily", from), "2026-03-05 00:00");
  EXPECT_EQ(next("@midnight", from), "2026-03-05 00:00");
  EXPECT_EQ(next("@weekly", from), "2026-03-08 00:00");
  EXPECT_EQ(next("@monthly", from), "2026-04-01 00:00");
  EXPECT_EQ(next("@yearly", from), "2027-01-01 00:00");
  EXPECT_EQ(next("@annually", from), "2027-01-01 00:00");
}

TEST(Cron, EitherDayMatchesIfBothAreRestricted) {
  // Friday, and the 13th.
  EXPECT_EQ(next("0 0 13 * 5", "2026-05-01 00:01"), "2026-05-08 00:00");
  EXPECT_EQ(next("0 0 13 * 5", "2026-05-08 00:01"), "2026-05-13 00:00");
  // A field that begins with a star does not count as restricted: both must match.
  EXPECT_EQ(next("0 0 13 * */5", "2026-05-01 00:01"), "2026-09-13 00:00");
  EXPECT_EQ(next("0 0 */2 * 1", "2026-05-01 00:01"), "2026-05-11 00:00");
  // 30 February does not exist, but Mondays do.
  EXPECT_EQ(next("0 0 30 2 1", "2026-01-01 00:00"), "2026-02-02 00:00");
}

TEST(Cron, RareDaysAreFound) {
  EXPECT_EQ(next("0 0 29 2 */7", "2020-01-01 00:00"), "2032-02-29 00:00");  // Sundays
  EXPECT_EQ(next("0 0 29 2 *", "2096-03-01 00:00"), "2104-02-29 00:00");
  EXPECT_EQ(Cron::parse("0 0 29 2 *").next(minute_at("2026-01-01 00:00"), minute_at("2028-02-29 00:00")),
            std::nullopt);
}

TEST(Cron, ErrorsNameTheField) {
  EXPECT_EQ(
      cron_error("60 * * * *"),
      "The minute of a cron expression, `60`, has `60` instead of a number; expected numbers from 0 to 59.");
  EXPECT_EQ(cron_error("* * * 1,foo *"),
            "The month of a cron expression, `1,foo`, has `foo` instead of a number; expected numbers from "
            "1 to 12 "
            "or jan to dec.");
  const std::pair<std::string_view, std::string_view> wrong[] = {{"* 24 * * *", "The hour"},
                                                                 {"* -1 * * *", "The hour"},
                                                                 {"* * 0 * *", "The day of the month"},
                                                                 {"* * 32 * *", "The day of the month"},
                                                                 {"* * mon * *", "The day of the month"},
                                                                 {"* * * 0 *", "The month"},
                                                                 {"* * * 13 *", "The month"},
                                                                 {"* * * * 8", "The day of the week"},
                                                                 {"* * * * jan", "The day of the week"},
                                                                 {"* * * * ?", "The day of the week"},
                                                                 {", * * * *", "The minute"},
                                                                 {"1, * * * *", "The minute"},
                                                                 {"1- * * * *", "The minute"},
                                                                 {"1-2-3 * * * *", "The minute"},
                                                                 {"+1 * * * *", "The minute"},
                                                                 {"99999999999 * * * *", "The minute"},
                                                                 {"** * * * *", "The minute"}};
  for (const auto& [expression, field] : wrong)
    EXPECT_TRUE(cron_error(expression).starts_with(field)) << expression << ": " << cron_error(expression);
  EXPECT_THAT(cron_error("5-1 * * * *"), testing::HasSubstr("descending range"));
  EXPECT_THAT(cron_error("5/2 * * * *"), testing::HasSubstr("a step without a range"));
  for (const std::string_view step : {"*/0", "*/", "*/60", "*/x", "1-5/-1", "*/5/5"})
    EXPECT_THAT(cron_error(fmt::format("{} * * * *", step)), testing::HasSubstr("instead of a step")) << step;
  for (const std::string_view fields : {"", " ", "* * * *", "* * * * * *"})
    EXPECT_THAT(cron_error(fields), testing::HasSubstr("expected five")) << fields;
  for (const std::string_view name : {"@reboot", "@Daily", "@", "@daily *"})
    EXPECT_THAT(cron_error(name), testing::HasSubstr("@hourly, @daily")) << name;
  EXPECT_THAT(cron_error(std::string(1001, ' ')), testing::HasSubstr("at most 1000 bytes"));
  EXPECT_THAT(cron_error("\xff * * * *"), testing::HasSubstr("UTF-8"));
}

TEST(Cron, ExpressionsThatNeverMatchAreRejected) {
  for (const std::string_view never : {"0 0 30 2 *", "0 0 31 4,6,9,11 *", "* * 31 2 */2", "0 0 30-31 feb *"})
    EXPECT_THAT(cron_error(never), testing::HasSubstr("does not exist in any of its months")) << never;
  for (const std::string_view sometimes : {"0 0 29 2 *", "0 0 31 3,4 *", "0 0 30 2 1"})
    EXPECT_EQ(cron_error(sometimes), "") << sometimes;
}

// The first match is the first of all minutes that match.
RC_GTEST_PROP(CronProperty, NextIsTheFirstThatMatches, ()) {
  const auto field = [](int min, int max) {
    const int first = *rc::gen::inRange(min, max + 1);
    return *rc::gen::element<std::string>("*", fmt::format("{}", first), fmt::format("{}-{}", first, max),
                                          fmt::format("*/{}", std::max(1, first)));
  };
  const Cron cron = [&] {
    for (;;) {
      try {
        return Cron::parse(fmt::format("{} {} {} {} {}", field(0, 59), field(0, 23), field(1, 31),
                                       field(1, 12), field(0, 7)));
      } catch (const Error&) {}  // a day that does not exist in any of its months
    }
  }();
  const LocalMinute from = minute_at("2026-01-01 00:00") + *rc::gen::inRange(0, 60 * 24 * 1500);
  const LocalMinute end = from + *rc::gen::inRange(0, 60 * 24 * 40);
  std::optional<LocalMinute> first;
  for (LocalMinute minute = from; minute < end && !first; ++minute) {
    if (cron.matches(minute)) first = minute;
  }
  RC_ASSERT(cron.next(from, end) == first);
}

}  // namespace
}  // namespace divan::jobs
