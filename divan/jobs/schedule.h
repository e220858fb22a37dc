// When a periodic job runs: a cron expression by the clocks of a time zone, and what is done about times that
// were missed. A *tick* is a moment at which it is to run.
//
// Clocks change. As with Vixie cron (cron(8), "daylight saving time and other time changes"):
// - An expression that names times of the day (neither minute nor hour begins with `*`) has a tick for each.
//   A time that a change leaves out has its tick at the first moment after the gap (one tick for all in the
//   gap); of a time that comes twice, the first is the tick.
// - An expression that repeats goes by the time that passes: it has a tick whenever the clock shows a minute
//   that matches, twice where that comes twice, and none where it does not come at all.
// (Unlike cron, which notices changes of up to three hours, this knows all of the zone.)
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "divan/jobs/cron.h"

namespace divan::jobs {

/// An occurrence is missed if nobody has begun it when the next is due.
enum class Missed {
  once,  // it runs late, once however many ticks went by
  skip,  // it does not run
};

/// A value type; immutable, so thread-safe.
class Schedule {
 public:
  /// No tick before the year 2400.
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  /// `time_zone` is a name of the tz database ("Europe/Berlin"). Throws bad_request, saying what is wrong.
  static Schedule parse(std::string_view cron, std::string_view time_zone, Missed missed = Missed::once);

  /// From {"cron": "...", "time_zone": "UTC", "missed": "once"|"skip"}, of which only the first must be
  /// there. `json` is JSON. Throws bad_request, also for unknown members.
  static Schedule of_json(std::string_view json);
  /// What of_json() reads, with all members. Equal schedules have the same.
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
