// A progress bar on a terminal; plain lines elsewhere.
#pragma once

#include <cstdint>
#include <string>

#include "divan/base/clock.h"

namespace divan::app {

/// Shows the progress of work whose amount is known or unknown. Not thread-safe.
class Progress {
 public:
  /// `label` precedes the bar, `unit` names what is counted.
  Progress(std::string label, std::string unit, const Clock& clock);

  /// `fraction` (0 to 1; negative: unknown) of the work is done, which is `count` units.
  void show(double fraction, std::int64_t count);
  /// Shows the final state, and ends the line.
  void finish(std::int64_t count);

  double seconds() const;

 private:
  const std::string label_;
  const std::string unit_;
  const Clock& clock_;
  const MonotonicTime started_;
  const bool terminal_;
  MonotonicTime shown_;
  int shown_tenth_ = -1;
};

}  // namespace divan::app
