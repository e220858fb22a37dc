#include "divan/js/log_rate_limiter.h"

#include <algorithm>
#include <utility>

#include "divan/base/check.h"

namespace divan::js {

std::optional<std::uint64_t> LogRateLimiter::take(const std::string& writer, MonotonicTime now) {
  auto& found = find(writer, now);
  if (found.lines < 1) {
    ++found.lost;
    return std::nullopt;
  }
  found.lines -= 1;
  return std::exchange(found.lost, 0);
}

void LogRateLimiter::add_dropped(const std::string& writer, std::uint64_t lines, MonotonicTime now) {
  find(writer, now).lost += lines;
}

LogRateLimiter::Writer& LogRateLimiter::find(const std::string& name, MonotonicTime now) {
  if (writers_.size() >= kMaxWriters && !writers_.contains(name)) {
    writers_.erase(std::min_element(writers_.begin(), writers_.end(), [](const auto& a, const auto& b) {
      return a.second.since < b.second.since;
    }));
  }
  auto& writer = writers_.try_emplace(name, Writer{kBurst, now, 0}).first->second;
  DIVAN_CHECK(writers_.size() <= kMaxWriters, "{} writers are tracked", writers_.size());
  const double seconds = std::chrono::duration<double>(now - writer.since).count();
  writer.lines = std::min(kBurst, writer.lines + seconds * rate_);
  writer.since = now;
  return writer;
}

}  // namespace divan::js
