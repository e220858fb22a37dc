// A set of keys, as ranges. For engines: what a transaction has cleared, and what it cannot read.
#pragma once

#include <absl/container/btree_map.h>

#include <functional>
#include <string>
#include <string_view>

namespace divan::kv {

/// Ranges of keys that neither overlap nor touch. Not thread-safe.
class RangeSet {
 public:
  using Ranges = absl::btree_map<std::string, std::string, std::less<>>;  // begin → end

  void add(std::string_view begin, std::string_view end);
  void remove(std::string_view begin, std::string_view end);
  bool empty() const { return ranges_.empty(); }
  auto begin() const { return ranges_.begin(); }
  auto end() const { return ranges_.end(); }

  /// The range that covers `key`, or end().
  Ranges::const_iterator covering(std::string_view key) const;
  /// The first range with keys at or after `key`, or end().
  Ranges::const_iterator first_after(std::string_view key) const;
  /// The last range with keys below `key`, or end().
  Ranges::const_iterator last_below(std::string_view key) const;

 private:
  Ranges ranges_;
};

}  // namespace divan::kv
