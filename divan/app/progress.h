// A progress bar on a terminal; plain lines elsewhere.
#pragma once

#include <cstdint>
#include <string>

#include "divan/base/clock.h"

namespace divan::app {

/// Shows how much of a known (or unknown) amount of work is done. Not thread-safe.
class Progress {
 public:
  /// `label` stands before the bar, `unit` names what is counted.
  Progress(std::string label, std::string unit, const Clock& clock);

  /// `fraction` (0 to 1) of the work is done, in which `count` units were; a negative fraction is an unknown
  /// one.
  void show(double fraction, std::int64_t count);
  /// The last state, and the line's end.
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
