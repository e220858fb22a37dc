#include "divan/jobs/schedule.h"

#include <absl/time/time.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <set>

#include "divan/base/error.h"

namespace divan::jobs {
namespace {

using namespace std::chrono;

// Milliseconds since 1970 of "2026-03-29T01:00:00Z" and back.
std::int64_t at(const std::string& text) {
  int year = 0;
  unsigned month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (std::sscanf(text.c_str(), "%d-%u-%uT%u:%u:%uZ", &year, &month, &day, &hour, &minute, &second) != 6)
    throw std::runtime_error(text);
  const auto days = sys_days(std::chrono::year(year) / month / day).time_since_epoch();
  return milliseconds(days + hours(hour) + minutes(minute) + seconds(second)).count();
}

std::string shown(std::int64_t ms) {
  if (ms == Schedule::kNever) return "never";
  const auto day = floor<days>(milliseconds(ms));
  const year_month_day date{sys_days(day)};
  const auto of_day = duration_cast<seconds>(milliseconds(ms) - day).count();
  return fmt::format("{}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), of_day / 3600,
                     of_day / 60 % 60, of_day % 60);
}

// The ticks after a moment.
std::vector<std::string> ticks(std::string_view cron, std::string_view zone, const std::string& after,
                               std::size_t count) {
  const Schedule schedule = Schedule::parse(cron, zone);
  std::vector<std::string> found;
  std::int64_t ms = at(after);
  while (found.size() < count) found.push_back(shown(ms = schedule.next_after(ms)));
  return found;
}

std::string schedule_error(std::string_view json) {
  try {
    Schedule::of_json(json);
  } catch (const Error& error) { return error.status() == 400 ? error.reason() : "status"; }
  return "";
}

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Schedule, UsesItsTimeZone) {
  EXPECT_THAT(ticks("30 7 * * *", "UTC", "2026-01-01T07:29:59Z", 2),
              ElementsAre("2026-01-01T07:30:00Z", "2026-01-02T07:30:00Z"));
  EXPECT_THAT(ticks("30 7 * * *", "Europe/Berlin", "2026-01-01T07:29:59Z", 1),
              ElementsAre("2026-01-02T06:30:00Z"));
  EXPECT_THAT(ticks("0 0 1 * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", 1),
              ElementsAre("2026-01-31T18:30:00Z"));
  EXPECT_THAT(ticks("*/30 * * * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", 2),
              ElementsAre("2026-01-01T00:30:00Z", "2026-01-01T01:00:00Z"));
  EXPECT_THAT(ticks("0 0 29 2 *", "America/New_York", "2026-01-01T00:00:00Z", 2),
              ElementsAre("2028-02-29T05:00:00Z", "2032-02-29T05:00:00Z"));
}

TEST(Schedule, UsesCurrentRules) {
  // Mexico abolished summer time in October 2022, and Egypt reintroduced it in 2023.
  EXPECT_THAT(ticks("0 12 * * *", "America/Mexico_City", "2025-07-01T00:00:00Z", 1),
              ElementsAre("2025-07-01T18:00:00Z"));
  EXPECT_THAT(ticks("0 12 * * *", "Africa/Cairo", "2025-07-01T00:00:00Z", 1),
              ElementsAre("2025-07-01T09:00:00Z"));
  // After the transitions that are listed explicitly.
  EXPECT_THAT(ticks("0 12 * * *", "Europe/Berlin", "2090-07-01T00:00:00Z", 1),
              ElementsAre("2090-07-01T10:00:00Z"));
}

TEST(Schedule, ASkippedTimeHasItsTickAfterTheGap) {
  // At 02:00 in Berlin it is 03:00.
  EXPECT_THAT(ticks("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2),
              ElementsAre("2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"));
  EXPECT_THAT(ticks("10,20,30 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 3),
              ElementsAre("2026-03-29T01:00:00Z", "2026-03-29T01:10:00Z", "2026-03-29T01:20:00Z"));
  // The gap's end is itself a time of the schedule: one tick.
  EXPECT_THAT(ticks("0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2),
              ElementsAre("2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"));
  // Half an hour, at 02:00 in Lord Howe; and the whole day of 30 December 2011 in Samoa.
  EXPECT_THAT(ticks("15 2 * * *", "Australia/Lord_Howe", "2025-10-04T12:00:00Z", 1),
              ElementsAre("2025-10-04T15:30:00Z"));
  EXPECT_THAT(ticks("0 12 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", 3),
              ElementsAre("2011-12-29T22:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"));
}

TEST(Schedule, TheTickOfARepeatedTimeIsTheFirst) {
  // At 03:00 in Berlin it is 02:00 again.
  EXPECT_THAT(ticks("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2),
              ElementsAre("2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"));
  EXPECT_THAT(ticks("0,30 1,2,3 * * *", "Europe/Berlin", "2026-10-24T22:00:00Z", 6),
              ElementsAre("2026-10-24T23:00:00Z", "2026-10-24T23:30:00Z", "2026-10-25T00:00:00Z",
                          "2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z", "2026-10-25T02:30:00Z"));
  // Starting in the second of the two hours.
  EXPECT_THAT(ticks("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", 1),
              ElementsAre("2026-10-26T01:30:00Z"));
}

TEST(Schedule, RepeatingExpressionsUseElapsedTime) {
  EXPECT_THAT(ticks("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 4),
              ElementsAre("2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z",
                          "2026-03-29T02:00:00Z"));
  EXPECT_THAT(ticks("@hourly", "Europe/Berlin", "2026-10-24T23:00:00Z", 4),
              ElementsAre("2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z",
                          "2026-10-25T03:00:00Z"));
  // 02:00 is skipped, without a run in its place.
  EXPECT_THAT(ticks("0 */2 * * *", "Europe/Berlin", "2026-03-28T22:00:00Z", 2),
              ElementsAre("2026-03-28T23:00:00Z", "2026-03-29T02:00:00Z"));
}

TEST(Schedule, TheLimitsOfTime) {
  const auto daily = Schedule::parse("@daily", "Europe/Berlin");
  EXPECT_EQ(shown(daily.next_after(std::numeric_limits<std::int64_t>::min())), "1970-01-01T23:00:00Z");
  EXPECT_EQ(shown(Schedule::parse("* * * * *", "UTC").next_after(-1)), "1970-01-01T00:00:00Z");
  EXPECT_EQ(shown(daily.next_after(at("2399-12-31T23:00:00Z"))), "never");
  EXPECT_EQ(shown(daily.next_after(Schedule::kNever)), "never");
}

TEST(Schedule, Json) {
  const auto schedule = Schedule::of_json(R"({"cron":"*/5 * * * *"})");
  EXPECT_EQ(schedule.json(), R"({"cron":"*/5 * * * *","time_zone":"UTC","missed":"once"})");
  const std::string all = R"({"cron":"@daily","time_zone":"Europe/Berlin","missed":"skip"})";
  EXPECT_EQ(Schedule::of_json(all).json(), all);
  EXPECT_EQ(Schedule::of_json(all).missed(), Missed::skip);
}

TEST(Schedule, BadJsonIsNamed) {
  for (const std::string_view no_object : {"null", "[]", "\"@daily\"", "5"})
    EXPECT_THAT(schedule_error(no_object), HasSubstr("Invalid schedule; expected an object")) << no_object;
  EXPECT_THAT(schedule_error("{}"), HasSubstr("Missing `cron`"));
  EXPECT_THAT(schedule_error(R"({"cron":""})"), HasSubstr("Missing `cron`"));
  EXPECT_THAT(schedule_error(R"({"cron":5})"), HasSubstr("Invalid `cron` of a schedule; expected a string"));
  EXPECT_THAT(schedule_error(R"({"cron":"@daily","zone":"UTC"})"), HasSubstr("Unknown member `zone`"));
  EXPECT_THAT(schedule_error(R"({"cron":"@daily","missed":"twice"})"),
              HasSubstr("Invalid `missed` of a schedule; expected `once` or `skip`"));
  EXPECT_THAT(schedule_error(R"({"cron":"@daily","missed":null})"),
              HasSubstr("Invalid `missed` of a schedule; expected a string"));
  EXPECT_THAT(schedule_error(R"({"cron":"0 0 30 2 *"})"), HasSubstr("does not exist in any of its months"));
  for (const std::string zone :
       {"", "Mars/Olympus", "Etc/Unknown", "GMT+3", "GMT+03:30", "Europe/Berlin ", "europe", "Europe",
        "Z\\u0000", "localtime", "right/Europe/Berlin", "/usr/share/zoneinfo/UTC", "file:/etc/passwd",
        "../../../etc/passwd", "\\u00e9"}) {
    EXPECT_THAT(schedule_error(R"({"cron":"@daily","time_zone":")" + zone + R"("})"),
                HasSubstr("Unknown time zone"))
        << zone;
  }
}

// A field's text and its numbers, computed independently of the parser.
struct Field {
  std::string text = "*";
  std::set<int> numbers;
};

Field make_field(int min, int max) {
  const int kind = *rc::gen::inRange(0, 4);
  const int first = *rc::gen::inRange(min, max + 1);
  const int last = *rc::gen::inRange(first, max + 1);
  const int step = *rc::gen::inRange(1, max);
  Field field;
  for (int i = min; i <= max; ++i) {
    const bool in = kind == 0   ? true
                    : kind == 1 ? i == first || i == last
                    : kind == 2 ? i >= first && i <= last && (i - first) % step == 0
                                : (i - min) % step == 0;
    if (in) field.numbers.insert(i);
  }
  if (kind == 1) field.text = fmt::format("{},{}", first, last);
  if (kind == 2) field.text = fmt::format("{}-{}/{}", first, last, step);
  if (kind == 3) field.text = fmt::format("*/{}", step);
  return field;
}

struct Fields {
  Field minute = make_field(0, 59), hour = make_field(0, 23), day = make_field(1, 31), month, weekday;
  bool repeats = minute.text.starts_with('*') || hour.text.starts_with('*');

  std::string text() const {
    return fmt::format("{} {} {} {} {}", minute.text, hour.text, day.text, month.text, weekday.text);
  }
  bool matches(LocalMinute local) const {
    const auto day_number = floor<days>(minutes(local));
    const year_month_day date{sys_days(day_number)};
    const int of_day = static_cast<int>((minutes(local) - day_number).count());
    const bool of_month = day.numbers.contains(static_cast<int>(static_cast<unsigned>(date.day())));
    const bool of_week =
        weekday.numbers.contains(static_cast<int>(std::chrono::weekday(sys_days(day_number)).c_encoding()));
    const bool both = day.text.starts_with('*') || weekday.text.starts_with('*');
    return minute.numbers.contains(of_day % 60) && hour.numbers.contains(of_day / 60) &&
           month.numbers.contains(static_cast<int>(static_cast<unsigned>(date.month()))) &&
           (both ? of_month && of_week : of_month || of_week);
  }
};

// The reference model: steps through local time minute by minute, and returns the first tick in (after,
// until].
std::optional<std::int64_t> model_tick(const Fields& fields, const absl::TimeZone& zone, std::int64_t after,
                                       std::int64_t until) {
  constexpr std::int64_t kMinuteMs = 60'000;
  const auto shows = [&](std::int64_t ms) {
    return (ms + zone.At(absl::FromUnixMillis(ms)).offset * 1000LL) / kMinuteMs;
  };
  std::int64_t ms = (after - 2 * 86'400'000) / kMinuteMs * kMinuteMs;
  LocalMinute seen = shows(ms);
  for (ms += kMinuteMs; ms <= until; ms += kMinuteMs) {
    const LocalMinute now = shows(ms);
    bool tick = fields.repeats && fields.matches(now);
    while (seen < now) tick = (fields.matches(++seen) && (seen == now || !fields.repeats)) || tick;
    if (tick && ms > after) return ms;
  }
  return std::nullopt;
}

RC_GTEST_PROP(ScheduleProperty, AgreesWithTheModel, ()) {
  const std::string name =
      *rc::gen::element<std::string>("Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
                                     "Asia/Kolkata", "UTC", "America/St_Johns", "Africa/Cairo");
  Fields fields;
  fields.month =
      *rc::gen::inRange(0, 3) == 0 ? make_field(1, 12) : Field{"*", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  fields.weekday = *rc::gen::inRange(0, 3) == 0 ? make_field(0, 6) : Field{"*", {0, 1, 2, 3, 4, 5, 6}};
  if (*rc::gen::inRange(0, 2) == 0) {
    fields.day.text = "*";
    for (int day = 1; day <= 31; ++day) fields.day.numbers.insert(day);
  }
  std::optional<Schedule> schedule;
  try {
    schedule = Schedule::parse(fields.text(), name);
  } catch (const Error&) { RC_DISCARD("never matches"); }

  absl::TimeZone zone;
  RC_ASSERT(absl::LoadTimeZone(name, &zone));
  std::int64_t after =
      at("1980-01-01T00:00:00Z") + *rc::gen::inRange<std::int64_t>(0, 100LL * 365 * 86'400'000);
  absl::TimeZone::CivilTransition change;
  if (*rc::gen::inRange(0, 4) != 0 && zone.NextTransition(absl::FromUnixMillis(after), &change)) {
    after = absl::ToUnixMillis(zone.At(change.from).trans) +
            *rc::gen::inRange<std::int64_t>(-86'400'000, 10'800'000);
  }
  const std::int64_t until = after + 2 * 86'400'000LL;

  RC_LOG() << fields.text() << " in " << name << " after " << shown(after);
  const auto expected = model_tick(fields, zone, after, until);
  const std::int64_t found = schedule->next_after(after);
  if (expected) {
    RC_ASSERT(shown(found) == shown(*expected));
    RC_ASSERT(found == *expected);
  } else {
    RC_ASSERT(found > until);
  }
}

}  // namespace
}  // namespace divan::jobs
