// The logger, the only global state of the process. Writes to standard error, or to the file of the setting
// [log] file. Thread-safe, except configure().
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace divan::log {

enum class Level { debug, info, warning, error, off };

/// Parses "debug", "info", "warning" (or "warn", "notice"), "error" (or another one of CouchDB's names for
/// errors, such as "critical"), or "none"; throws bad_request for any other name.
Level parse_level(std::string_view name);

/// Sets the log file (empty: standard error) and the least severe level that is written. Call during
/// start-up. Throws internal_error if the file cannot be opened.
void configure(Level level, const std::string& path = {});
void set_level(Level level);

bool enabled(Level level);
/// Writes printable() of the line: names that clients choose must not forge lines.
void write(Level level, std::string_view line);

template <class... Args>
void emit(Level level, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(level)) write(level, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  emit(Level::debug, format, std::forward<Args>(args)...);
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  emit(Level::info, format, std::forward<Args>(args)...);
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  emit(Level::warning, format, std::forward<Args>(args)...);
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  emit(Level::error, format, std::forward<Args>(args)...);
}

}  // namespace divan::log
