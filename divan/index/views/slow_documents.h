// Documents for which a map function ran out of time. A build that fails for them is tried again; what is
// remembered here is not run again for that, until the document or the limit changes. A cache: nothing is
// lost with it but time.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "divan/base/clock.h"

namespace divan::index::views {

/// Thread-safe.
class SlowDocuments {
 public:
  struct Key {
    std::int64_t database = 0;  // its number
    std::string signature;      // of the index
    std::size_t function = 0;   // its number in the index
    std::string document;       // the sequence of its last change

    auto operator<=>(const Key&) const = default;
  };

  /// Remembered at most; the oldest are forgotten.
  static constexpr std::size_t kMax = 10'000;

  /// `invocation`: the limit that was too short; `what`: for people.
  void add(const Key& key, Duration invocation, std::string what);
  /// What was added, if `invocation` is no longer than it was then.
  std::optional<std::string> find(const Key& key, Duration invocation) const;
  bool empty() const;

 private:
  struct Entry {
    Duration invocation;
    std::string what;
  };

  mutable std::mutex mutex_;
  std::map<Key, Entry> entries_;
  std::deque<std::map<Key, Entry>::const_iterator> by_age_;
};

}  // namespace divan::index::views
