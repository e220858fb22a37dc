// The logger: the one piece of global state. Lines go to standard error, or to the file of [log] file.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace divan::log {

enum class Level { debug, info, warning, error, off };

/// Reads "debug", "info", "warning" (or "warn", "notice"), "error" or "none"; throws bad_request for anything
/// else.
Level parse_level(std::string_view name);

/// Sets where lines go (an empty path: standard error) and the least severe level that is written.
/// Thread-safe, but meant for start-up. Throws if the file cannot be opened.
void configure(Level level, const std::string& path = {});
void set_level(Level level);

bool enabled(Level level);
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
