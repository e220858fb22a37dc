// Times and durations as people write and read them on the command line: 2030-01-31T08:00Z, 1h30m. Times are
// in milliseconds since 1970 and always shown in UTC, so that two people who look at one queue read the same.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace divan::app {

/// "500ms", "10m", "1h30m": whole numbers with the units ms, s, m, h and d, which are added up. Throws
/// bad_request for anything else, and for more than 100 years.
std::chrono::milliseconds parse_duration(std::string_view text);

/// What parse_duration() takes, with the largest units that are whole: "1h30m", "0s".
std::string format_duration(std::chrono::milliseconds duration);

/// A point in time as RFC 3339 has it, "2030-01-31T08:00:00+01:00"; a space may stand for the T, seconds
/// (with up to three digits after the point) and the whole time of day may be missing, and without an offset
/// it is UTC. Throws bad_request for anything else, and for years before 1970.
std::int64_t parse_time(std::string_view text);

/// "2030-01-31T08:00:00Z"; for times that four digits do not hold, the milliseconds.
std::string format_time(std::int64_t ms);

}  // namespace divan::app
