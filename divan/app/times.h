// Times and durations on the command line: 2030-01-31T08:00Z, 1h30m. Times are in milliseconds since 1970 and
// always shown in UTC, so that they are the same for all users.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace divan::app {

/// Parses "500ms", "10m" or "1h30m": integers with the units ms, s, m, h and d, which are added. Throws
/// bad_request if the duration is malformed or longer than 100 years.
std::chrono::milliseconds parse_duration(std::string_view text);

/// Formats a duration for parse_duration(), with the largest possible units: "1h30m", "0s".
std::string format_duration(std::chrono::milliseconds duration);

/// Parses a time in RFC 3339's format, "2030-01-31T08:00:00+01:00". A space may replace the T; seconds (with
/// up to three decimal places) and the time of day are optional; without an offset the time is UTC. Throws
/// bad_request if it is malformed or before 1970.
std::int64_t parse_time(std::string_view text);

/// Formats a time as "2030-01-31T08:00:00Z", or as its milliseconds if it is not in the years 1970 to 9999.
std::string format_time(std::int64_t ms);

}  // namespace divan::app
