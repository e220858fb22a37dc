// For model tests that take every interleaving of a few threads.
#pragma once

#include <cstddef>
#include <vector>

namespace divan {

/// Takes all schedules of a program that makes its choices with choose(): the program is run again and again,
/// from the beginning, until next() returns false.
class Schedules {
 public:
  /// Returns a number below `options`, which is positive.
  std::size_t choose(std::size_t options) {
    if (depth_ == choices_.size()) choices_.push_back({0, options});
    return choices_[depth_++].taken;
  }
  /// Called after each run. Returns false if all schedules have been taken.
  bool next() {
    depth_ = 0;
    ++count_;
    while (!choices_.empty() && choices_.back().taken + 1 == choices_.back().options) choices_.pop_back();
    if (choices_.empty()) return false;
    ++choices_.back().taken;
    return true;
  }
  /// The number of runs so far.
  int count() const { return count_; }

 private:
  struct Choice {
    std::size_t taken, options;
  };
  std::vector<Choice> choices_;
  std::size_t depth_ = 0;
  int count_ = 0;
};

}  // namespace divan
