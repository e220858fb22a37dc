// The last lines of the log, which a process keeps in memory. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace spdlog::sinks {
class sink;
}

namespace divan::log {

/// How many lines are kept.
inline constexpr std::size_t kRecentLines = 1000;

struct Line {
  std::int64_t time_us = 0;  ///< since 1970
  std::string level;         ///< "debug", "info", "warning", "error"
  std::string text;
};

/// The last lines that were written, the oldest first: at most `limit`, and only those after `after_us`.
std::vector<Line> recent_lines(std::size_t limit, std::int64_t after_us = 0);

/// Where the logger writes the lines to be kept.
std::shared_ptr<spdlog::sinks::sink> recent_lines_sink();

}  // namespace divan::log
