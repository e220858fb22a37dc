// A cache of documents for which a map function ran out of time. When the build that failed for them is
// retried, the function is not run again until the document or the limit changes. Losing the cache costs only
// time.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>

#include "divan/base/clock.h"

namespace divan::index::views {

/// A bounded cache of timeouts. Thread-safe.
class SlowDocuments {
 public:
  struct Key {
    std::int64_t database = 0;  // its number
    std::string signature;      // of the index
    std::size_t function = 0;   // its number in the index
    std::string document;       // the sequence of the document's last change

    auto operator<=>(const Key&) const = default;
  };

  /// Maximum number of entries; the oldest are evicted.
  static constexpr std::size_t kMax = 10'000;

  /// `invocation`: the limit that was exceeded; `what`: the error message.
  void add(const Key& key, Duration invocation, std::string what);
  /// Returns the message of an entry if `invocation` is not longer than the limit that was exceeded.
  std::optional<std::string> find(const Key& key, Duration invocation) const;
  bool empty() const;

 private:
  struct Entry {
    Duration invocation;
    std::string what;
  };

  mutable Mutex mutex_{MutexRank::slow_documents, "SlowDocuments::mutex_"};  // protects the members below
  std::map<Key, Entry> entries_;
  std::deque<std::map<Key, Entry>::const_iterator> by_age_;
};

}  // namespace divan::index::views
