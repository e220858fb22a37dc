#include "divan/jobs/cron.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "divan/base/bytes.h"
#include "divan/base/error.h"

namespace divan::jobs {
namespace {

using std::chrono::days;
using std::chrono::sys_days;
using std::chrono::year_month_day;

constexpr std::size_t kMaxExpressionBytes = 1000;
constexpr LocalMinute kMinutesPerDay = 24 * 60;
constexpr unsigned kMinutesPerHour = 60;

constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                      "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdays = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
constexpr unsigned kSunday = 7;  // same as 0

struct Field {
  std::string_view name;
  unsigned min;
  unsigned max;
  std::span<const std::string_view> names;  // of the numbers from `min` on
};
constexpr std::array<Field, 5> kFields = {
    Field{"minute", 0, 59, {}}, Field{"hour", 0, 23, {}}, Field{"day of the month", 1, 31, {}},
    Field{"month", 1, 12, kMonths}, Field{"day of the week", 0, kSunday, kWeekdays}};

// The most days of each month.
constexpr std::array<unsigned, 13> kMostDays = {0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

using Numbers = std::bitset<64>;

// Parses one field's text, which must outlive it.
class FieldParser {
 public:
  FieldParser(const Field& field, std::string_view text) : field_(field), text_(text) {}

  Numbers parse() const {
    Numbers numbers;
    for (std::string_view rest = text_;;) {
      const auto comma = rest.find(',');
      add_part(rest.substr(0, comma), numbers);
      if (comma == std::string_view::npos) return numbers;
      rest.remove_prefix(comma + 1);
    }
  }

 private:
  Error wrong(std::string_view why) const {
    const std::string names =
        field_.names.empty() ? "" : fmt::format(" or {} to {}", field_.names.front(), field_.names.back());
    return bad_request(fmt::format("The {} of a cron expression, `{}`, {}; expected numbers from {} to {}{}.",
                                   field_.name, text_, why, field_.min, field_.max, names));
  }

  static std::optional<unsigned> number(std::string_view text) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
  }

  unsigned value(std::string_view text) const {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    const auto name = std::find(field_.names.begin(), field_.names.end(), lower);
    if (name != field_.names.end()) return field_.min + static_cast<unsigned>(name - field_.names.begin());
    const auto value = number(text);
    if (!value || *value < field_.min || *value > field_.max)
      throw wrong(fmt::format("has `{}` instead of a number", text));
    return *value;
  }

  // Parses a number, a range or `*`, the latter two optionally with a step.
  void add_part(std::string_view part, Numbers& numbers) const {
    const auto slash = part.find('/');
    const std::string_view base = part.substr(0, slash);
    const auto dash = base.find('-');
    const bool is_range = base == "*" || dash != std::string_view::npos;
    unsigned first = field_.min;
    unsigned last = field_.max;
    if (base != "*") {
      first = value(base.substr(0, dash));
      last = dash == std::string_view::npos ? first : value(base.substr(dash + 1));
      // `sun` at the end of a range is 7.
      if (last == 0 && first > 0 && field_.max == kSunday) last = kSunday;
      if (last < first) throw wrong(fmt::format("has the descending range `{}`", base));
    }
    unsigned step = 1;
    if (slash != std::string_view::npos) {
      if (!is_range) throw wrong(fmt::format("has a step without a range in `{}`", part));
      const auto given = number(part.substr(slash + 1));
      if (!given || *given == 0 || *given > field_.max)
        throw wrong(fmt::format("has `{}` instead of a step", part.substr(slash + 1)));
      step = *given;
    }
    for (unsigned i = first; i <= last; i += step) numbers.set(i);
  }

  const Field& field_;
  const std::string_view text_;
};

// Replaces an abbreviation.
std::string_view expanded(std::string_view expression) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kShorthands = {
      {{"@hourly", "0 * * * *"},
       {"@daily", "0 0 * * *"},
       {"@midnight", "0 0 * * *"},
       {"@weekly", "0 0 * * 0"},
       {"@monthly", "0 0 1 * *"},
       {"@yearly", "0 0 1 1 *"},
       {"@annually", "0 0 1 1 *"}}};
  if (!expression.starts_with('@')) return expression;
  for (const auto& [name, meaning] : kShorthands) {
    if (name == expression) return meaning;
  }
  throw bad_request(fmt::format(
      "Unknown cron expression `{}`; expected one of @hourly, @daily, @weekly, @monthly and @yearly.",
      expression));
}

std::vector<std::string_view> split(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  std::vector<std::string_view> words;
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    if (text.empty()) return words;
    words.push_back(text.substr(0, text.find_first_of(kBlanks)));
    text.remove_prefix(words.back().size());
  }
}

template <std::size_t N>
std::bitset<N> narrow(const Numbers& numbers) {
  return std::bitset<N>(numbers.to_ullong());
}

}  // namespace

Cron Cron::parse(std::string_view expression) {
  if (expression.size() > kMaxExpressionBytes || !is_utf8(expression))
    throw bad_request(
        fmt::format("Invalid cron expression; expected at most {} bytes of UTF-8.", kMaxExpressionBytes));
  const auto texts = split(expanded(expression));
  if (texts.size() != kFields.size()) {
    throw bad_request(
        fmt::format("The cron expression `{}` has {} fields; expected five: minute, hour, day of the month, "
                    "month, day of the week.",
                    expression, texts.size()));
  }
  std::array<Numbers, kFields.size()> numbers;
  for (std::size_t i = 0; i < kFields.size(); ++i) numbers[i] = FieldParser(kFields[i], texts[i]).parse();
  if (numbers[4].test(kSunday)) numbers[4].reset(kSunday).set(0);

  Cron cron;
  cron.minutes_ = narrow<60>(numbers[0]);
  cron.hours_ = narrow<24>(numbers[1]);
  cron.days_ = narrow<32>(numbers[2]);
  cron.months_ = narrow<13>(numbers[3]);
  cron.weekdays_ = narrow<7>(numbers[4]);
  cron.any_day_suffices_ = !texts[2].starts_with('*') && !texts[4].starts_with('*');
  cron.repeats_ = texts[0].starts_with('*') || texts[1].starts_with('*');

  // Each existing day of a month falls on each day of the week in some year.
  bool exists = cron.any_day_suffices_;
  for (unsigned month = 1; month < cron.months_.size(); ++month) {
    for (unsigned day = 1; day <= kMostDays[month]; ++day)
      exists = exists || (cron.months_.test(month) && cron.days_.test(day));
  }
  if (!exists) {
    throw bad_request(fmt::format(
        "The day of the month of the cron expression `{}` does not exist in any of its months.", expression));
  }
  return cron;
}

bool Cron::matches_day(unsigned day, unsigned weekday) const {
  const bool of_month = days_.test(day);
  const bool of_week = weekdays_.test(weekday);
  return any_day_suffices_ ? of_month || of_week : of_month && of_week;
}

bool Cron::matches(LocalMinute minute) const {
  const LocalMinute day_number = std::chrono::floor<days>(std::chrono::minutes(minute)).count();
  const auto minute_of_day = static_cast<unsigned>(minute - day_number * kMinutesPerDay);
  const sys_days day{days(day_number)};
  const year_month_day date(day);
  return months_.test(static_cast<unsigned>(date.month())) &&
         matches_day(static_cast<unsigned>(date.day()), std::chrono::weekday(day).c_encoding()) &&
         hours_.test(minute_of_day / kMinutesPerHour) && minutes_.test(minute_of_day % kMinutesPerHour);
}

std::optional<unsigned> Cron::next_minute_of_day(unsigned from) const {
  for (unsigned minute = from; minute < kMinutesPerDay;) {
    const unsigned hour = minute / kMinutesPerHour;
    if (!hours_.test(hour)) {
      minute = (hour + 1) * kMinutesPerHour;
    } else if (minutes_.test(minute % kMinutesPerHour)) {
      return minute;
    } else {
      ++minute;
    }
  }
  return std::nullopt;
}

std::optional<LocalMinute> Cron::next(LocalMinute from, LocalMinute end) const {
  sys_days day =
      std::chrono::floor<days>(std::chrono::sys_time<std::chrono::minutes>(std::chrono::minutes(from)));
  for (;;) {
    const LocalMinute midnight = day.time_since_epoch().count() * kMinutesPerDay;
    if (midnight >= end) return std::nullopt;
    const year_month_day date(day);
    if (!months_.test(static_cast<unsigned>(date.month()))) {
      day = sys_days((date.year() / date.month() + std::chrono::months(1)) / 1);
      continue;
    }
    if (matches_day(static_cast<unsigned>(date.day()), std::chrono::weekday(day).c_encoding())) {
      const auto minute =
          next_minute_of_day(static_cast<unsigned>(std::max(from - midnight, LocalMinute{0})));
      if (minute && midnight + *minute >= end) return std::nullopt;
      if (minute) return midnight + *minute;
    }
    day += days(1);
  }
}

}  // namespace divan::jobs
