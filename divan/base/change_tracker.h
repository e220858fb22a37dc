// For how long values have not changed, as observed by this process.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "divan/base/clock.h"

namespace divan {

/// Tracks values that others change while they are alive. Not thread-safe.
template <class Key>
class ChangeTracker {
 public:
  /// Returns for how long `key` has had this value, since it was first observed with it. `now` must not
  /// decrease from call to call.
  Duration observe(const Key& key, std::string_view value, MonotonicTime now) {
    const auto [found, is_new] = observed_.try_emplace(key, Observation{std::string(value), now});
    Observation& seen = found->second;
    if (!is_new && seen.value != value) seen = {std::string(value), now};
    return now - seen.since;
  }

  /// Forgets the keys for which `is_present(key)` is false.
  template <class IsPresent>
  void retain(const IsPresent& is_present) {
    std::erase_if(observed_, [&](const auto& entry) { return !is_present(entry.first); });
  }

 private:
  struct Observation {
    std::string value;
    MonotonicTime since;
  };

  std::map<Key, Observation> observed_;
};

}  // namespace divan
