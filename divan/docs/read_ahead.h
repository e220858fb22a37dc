// How many documents of a list to ask a remote store for together: some more than the last page took of them.
#pragma once

#include <algorithm>
#include <cstddef>

namespace divan::docs {

/// Not thread-safe.
class ReadAhead {
 public:
  explicit ReadAhead(std::size_t most) : most_(most), next_(most) {}

  /// How many to ask for now.
  std::size_t next() const { return next_; }
  void used() { ++used_; }
  /// A page is at its end.
  void end_page() {
    constexpr std::size_t kLeast = 8;
    next_ = std::clamp(2 * used_, std::min(kLeast, most_), most_);
    used_ = 0;
  }

 private:
  const std::size_t most_;
  std::size_t next_;
  std::size_t used_ = 0;
};

}  // namespace divan::docs
