// The number of documents of a list to prefetch from a remote store: twice as many as the last page used.
#pragma once

#include <algorithm>
#include <cstddef>

namespace divan::docs {

/// An adaptive prefetch window. Not thread-safe.
class ReadAhead {
 public:
  explicit ReadAhead(std::size_t max) : max_(max), next_(max) {}

  /// The number of documents to prefetch now.
  std::size_t next() const { return next_; }
  void used() { ++used_; }
  /// Adjusts the window to the documents used() since the last call.
  void end_page() {
    constexpr std::size_t kMin = 8;
    next_ = std::clamp(2 * used_, std::min(kMin, max_), max_);
    used_ = 0;
  }

 private:
  const std::size_t max_;
  std::size_t next_;
  std::size_t used_ = 0;
};

}  // namespace divan::docs
