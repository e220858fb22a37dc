// Cron expressions: the minutes of a local calendar in which a job runs.
//
// Five fields as in crontab(5): minute (0-59), hour (0-23), day of the month (1-31), month (1-12 or jan-dec)
// and day of the week (0-7 or sun-sat; 0 and 7 are Sunday). A field is a list (`1,15`) of numbers or names,
// ranges (`9-17`), and `*` for all; ranges and `*` may have a step (`*/5`, `8-18/2`). If both the day of the
// month and that of the week are restricted, a day matches if either does (Vixie cron's rule: a field that
// begins with `*` does not count as restricted, and both must match then). `@hourly`, `@daily` (`@midnight`),
// `@weekly`, `@monthly` and `@yearly` (`@annually`) are abbreviations of the usual expressions.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>

namespace divan::jobs {

/// A minute of a local calendar: minutes since 1970-01-01 00:00 in local time.
using LocalMinute = std::int64_t;

/// A cron expression. A value type; immutable.
class Cron {
 public:
  /// Throws bad_request, naming the invalid field; also if the expression never matches (30 February).
  static Cron parse(std::string_view expression);

  bool matches(LocalMinute minute) const;

  /// The first matching minute in [from, end), from 1970 on; nullopt if there is none. Takes microseconds, or
  /// a millisecond if there is none in decades.
  std::optional<LocalMinute> next(LocalMinute from, LocalMinute end) const;

  /// Returns true if the minute or the hour begins with `*`: the expression repeats by elapsed time instead
  /// of naming times of the day. This matters when clocks change (schedule.h).
  bool repeats() const { return repeats_; }

 private:
  bool matches_day(unsigned day, unsigned weekday) const;
  std::optional<unsigned> next_minute_of_day(unsigned from) const;

  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;
  std::bitset<13> months_;
  std::bitset<7> weekdays_;
  bool any_day_suffices_ = false;  // both the day of the month and that of the week are restricted
  bool repeats_ = false;
};

}  // namespace divan::jobs
