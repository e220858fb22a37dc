#include "divan/base/log.h"

#include <fmt/core.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "divan/base/error.h"
#include "divan/base/log_lines.h"
#include "divan/base/printable.h"

namespace divan::log {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug: return spdlog::level::debug;
    case Level::info: return spdlog::level::info;
    case Level::warning: return spdlog::level::warn;
    case Level::error: return spdlog::level::err;
    case Level::off: return spdlog::level::off;
  }
  return spdlog::level::info;
}

std::shared_ptr<spdlog::logger> make_logger(spdlog::sink_ptr sink, Level level) {
  auto logger = std::make_shared<spdlog::logger>(
      "divan", spdlog::sinks_init_list{std::move(sink), recent_lines_sink()});
  logger->set_pattern("[%Y-%m-%dT%H:%M:%S.%e%z] [%^%l%$] %v");
  logger->set_level(to_spdlog(level));
  logger->flush_on(spdlog::level::info);
  return logger;
}

std::shared_ptr<spdlog::logger>& logger() {
  static std::shared_ptr<spdlog::logger> instance =
      make_logger(std::make_shared<spdlog::sinks::stderr_color_sink_mt>(), Level::warning);
  return instance;
}

}  // namespace

Level parse_level(std::string_view name) {
  if (name == "debug") return Level::debug;
  if (name == "info") return Level::info;
  if (name == "warning" || name == "warn" || name == "notice") return Level::warning;
  if (name == "error" || name == "err" || name == "critical" || name == "crit" || name == "alert" ||
      name == "emergency" || name == "emerg")
    return Level::error;
  if (name == "none") return Level::off;
  throw bad_request(
      fmt::format("Unknown log level `{}`; expected one of debug, info, warning, error, none.", name));
}

void configure(Level level, const std::string& path) {
  if (path.empty()) {
    logger() = make_logger(std::make_shared<spdlog::sinks::stderr_color_sink_mt>(), level);
    return;
  }
  try {
    logger() = make_logger(std::make_shared<spdlog::sinks::basic_file_sink_mt>(path), level);
  } catch (const spdlog::spdlog_ex& e) {
    throw internal_error(fmt::format("Cannot open log file {}: {}", path, e.what()));
  }
}

void set_level(Level level) { logger()->set_level(to_spdlog(level)); }

bool enabled(Level level) { return logger()->should_log(to_spdlog(level)); }

void write(Level level, std::string_view line) { logger()->log(to_spdlog(level), printable(line)); }

}  // namespace divan::log
