// A map of bounded size with least-recently-used eviction.
#pragma once

#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace divan {

/// A map from strings to values that holds at most `capacity` (at least 1) entries: inserting one more
/// removes the entry that was least recently inserted or touched. Not thread-safe. References to a value stay
/// valid until its entry is removed.
template <class Value>
class LruMap {
 public:
  explicit LruMap(std::size_t capacity) : capacity_(capacity) {}

  /// The value of `key`, or null if the key is missing. Counts as a use.
  Value* touch(std::string_view key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->second;
  }

  /// Like touch(), without counting as a use.
  const Value* find(std::string_view key) const {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &found->second->second;
  }

  /// The value of `key`, default-constructed if the key was missing. Counts as a use.
  Value& operator[](std::string_view key) {
    if (Value* value = touch(key)) return *value;
    if (entries_.size() >= capacity_) {
      index_.erase(entries_.back().first);
      entries_.pop_back();
    }
    entries_.emplace_front(std::string(key), Value());
    index_.emplace(entries_.front().first, entries_.begin());
    return entries_.front().second;
  }

  void erase(std::string_view key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return;
    const auto entry = found->second;
    index_.erase(found);
    entries_.erase(entry);
  }

  void clear() {
    index_.clear();
    entries_.clear();
  }

  std::size_t size() const { return entries_.size(); }

 private:
  using Entries = std::list<std::pair<const std::string, Value>>;

  const std::size_t capacity_;
  Entries entries_;                                                         // the most recently used first
  std::unordered_map<std::string_view, typename Entries::iterator> index_;  // keys are in entries_
};

}  // namespace divan
