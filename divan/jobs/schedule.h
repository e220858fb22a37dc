// The schedule of a periodic job: a cron expression in a time zone, and the handling of missed occurrences. A
// *tick* is a time at which the job should run.
//
// When clocks change, it behaves like Vixie cron (cron(8), "daylight saving time and other time changes"):
// - An expression that names times of the day (neither minute nor hour begins with `*`) has a tick for each.
//   A time that a change skips has its tick at the end of the gap (one tick for all times in the gap); a time
//   that occurs twice has its tick at the first.
// - An expression that repeats uses elapsed time: it has a tick whenever the clock shows a matching minute,
//   two if the minute occurs twice, and none if it is skipped.
// (Unlike cron, which handles changes of up to three hours, this handles all changes of the zone.)
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "divan/jobs/cron.h"

namespace divan::jobs {

/// An occurrence is missed if it was not started before the next tick.
enum class Missed {
  once,  // it runs late, once for any number of missed ticks
  skip,  // it does not run
};

/// A value type; immutable, so thread-safe.
class Schedule {
 public:
  /// There is no tick before the year 2400.
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  /// `time_zone` is a name of the tz database ("Europe/Berlin"). Throws bad_request for an invalid expression
  /// or zone.
  static Schedule parse(std::string_view cron, std::string_view time_zone, Missed missed = Missed::once);

  /// Parses {"cron": "...", "time_zone": "UTC", "missed": "once"|"skip"}; only `cron` is required. `json`
  /// must be valid JSON. Throws bad_request, also for unknown members.
  static Schedule of_json(std::string_view json);
  /// The JSON form with all members. Equal schedules have the same form.
  std::string json() const;

  /// The first tick after `ms`, both in milliseconds since 1970 (UTC).
  std::int64_t next_after(std::int64_t ms) const;

  Missed missed() const { return missed_; }

 private:
  struct Zone;
  struct Span;
  Schedule(std::string_view cron, std::string_view time_zone, Missed missed);

  std::string expression_;
  std::string time_zone_;
  Missed missed_;
  Cron cron_;
  std::shared_ptr<const Zone> zone_;
};

}  // namespace divan::jobs
