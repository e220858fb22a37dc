#include "divan/base/log_lines.h"

#include <spdlog/sinks/ringbuffer_sink.h>

#include <algorithm>
#include <chrono>

namespace divan::log {
namespace {

const std::shared_ptr<spdlog::sinks::ringbuffer_sink_mt>& ring() {
  static const auto sink = std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(kRecentLines);
  return sink;
}

std::string name_of(spdlog::level::level_enum level) {
  const auto name = spdlog::level::to_string_view(level);
  return {name.data(), name.size()};
}

}  // namespace

std::shared_ptr<spdlog::sinks::sink> recent_lines_sink() { return ring(); }

std::vector<Line> recent_lines(std::size_t limit, std::int64_t after_us) {
  const auto messages = ring()->last_raw();
  std::vector<Line> lines;
  for (auto message = messages.rbegin(); message != messages.rend() && lines.size() < limit; ++message) {
    const auto time =
        std::chrono::duration_cast<std::chrono::microseconds>(message->time.time_since_epoch()).count();
    if (time > after_us)
      lines.push_back({time, name_of(message->level), {message->payload.data(), message->payload.size()}});
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

}  // namespace divan::log
