// Keys that are remembered for a while.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

#include "divan/base/clock.h"

namespace divan {

/// Forgets each key some time after it was added last, and the oldest keys when there are too many. Not
/// thread-safe.
class RecentKeys {
 public:
  RecentKeys(Duration lifetime, std::size_t max_keys) : lifetime_(lifetime), max_keys_(max_keys) {}

  void add(const std::string& key, MonotonicTime now) {
    if (added_.size() >= max_keys_ && !added_.contains(key)) {
      std::erase_if(added_, [&](const auto& entry) { return now - entry.second >= lifetime_; });
      const auto is_older = [](const auto& a, const auto& b) { return a.second < b.second; };
      if (added_.size() >= max_keys_) added_.erase(std::min_element(added_.begin(), added_.end(), is_older));
    }
    added_.insert_or_assign(key, now);
  }
  void erase(const std::string& key) { added_.erase(key); }
  bool contains(const std::string& key, MonotonicTime now) const {
    const auto found = added_.find(key);
    return found != added_.end() && now - found->second < lifetime_;
  }

 private:
  const Duration lifetime_;
  const std::size_t max_keys_;
  std::map<std::string, MonotonicTime> added_;
};

}  // namespace divan
