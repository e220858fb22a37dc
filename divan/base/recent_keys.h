// A set of keys that expire.
#pragma once

#include <string_view>

#include "divan/base/clock.h"
#include "divan/base/lru_map.h"

namespace divan {

/// Removes each key some time after it was last added, and the oldest keys if there are too many. Not
/// thread-safe.
class RecentKeys {
 public:
  RecentKeys(Duration lifetime, std::size_t max_keys) : lifetime_(lifetime), added_(max_keys) {}

  void add(std::string_view key, MonotonicTime now) { added_[key] = now; }
  void erase(std::string_view key) { added_.erase(key); }
  bool contains(std::string_view key, MonotonicTime now) const {
    const MonotonicTime* added = added_.find(key);
    return added && now - *added < lifetime_;
  }

 private:
  const Duration lifetime_;
  LruMap<MonotonicTime> added_;
};

}  // namespace divan
