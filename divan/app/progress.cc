#include "divan/app/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace divan::app {
namespace {

constexpr int kBarWidth = 30;
constexpr Duration kRedraw = std::chrono::milliseconds(100);

}  // namespace

Progress::Progress(std::string label, std::string unit, const Clock& clock)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      clock_(clock),
      started_(clock.now()),
      terminal_(::isatty(STDERR_FILENO) == 1),
      shown_(started_ - kRedraw) {}

double Progress::seconds() const { return std::chrono::duration<double>(clock_.now() - started_).count(); }

void Progress::show(double fraction, std::int64_t count) {
  const auto now = clock_.now();
  const double rate = static_cast<double>(count) / std::max(seconds(), 0.001);
  if (!terminal_) {
    const int tenth = static_cast<int>(fraction * 10);
    if (fraction < 0 || tenth == shown_tenth_) return;
    shown_tenth_ = tenth;
    fmt::print(stderr, "{} {:3.0f} %  {} {}  {:.0f}/s\n", label_, fraction * 100, count, unit_, rate);
    return;
  }
  if (now - shown_ < kRedraw) return;
  shown_ = now;
  const int filled = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * kBarWidth);
  const std::string bar = std::string(static_cast<std::size_t>(filled), '#') +
                          std::string(static_cast<std::size_t>(kBarWidth - filled), '.');
  if (fraction < 0) {
    fmt::print(stderr, "\r\033[K{} {} {}  {:.0f}/s", label_, count, unit_, rate);
  } else {
    fmt::print(stderr, "\r\033[K{} [{}] {:3.0f} %  {} {}  {:.0f}/s", label_, bar, fraction * 100, count,
               unit_, rate);
  }
  std::fflush(stderr);
}

void Progress::finish(std::int64_t count) {
  const double taken = std::max(seconds(), 0.001);
  fmt::print(stderr, "{}{} {} {} in {:.1f} s, {:.0f}/s\n", terminal_ ? "\r\033[K" : "", label_, count, unit_,
             taken, static_cast<double>(count) / taken);
}

}  // namespace divan::app
