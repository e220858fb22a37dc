#include "divan/kv/range_set.h"

#include <algorithm>

#include "divan/base/check.h"

namespace divan::kv {

void RangeSet::add(std::string_view begin, std::string_view end) {
  if (begin >= end) return;
  std::string first(begin);
  std::string last(end);
  auto it = ranges_.upper_bound(first);
  if (it != ranges_.begin() && std::prev(it)->second >= first) --it;
  while (it != ranges_.end() && it->first <= last) {
    first = std::min(first, it->first);
    last = std::max(last, it->second);
    it = ranges_.erase(it);
  }
  DIVAN_CHECK(it == ranges_.end() || last < it->first, "two ranges overlap");
  ranges_.emplace_hint(it, std::move(first), std::move(last));
}

void RangeSet::remove(std::string_view begin, std::string_view end) {
  if (begin >= end) return;
  for (auto it = first_after(begin); it != ranges_.end() && it->first < end; it = first_after(begin)) {
    const auto [first, last] = *it;
    ranges_.erase(it);
    if (first < begin) ranges_.emplace(first, begin);
    if (end < last) ranges_.emplace(end, last);
  }
}

RangeSet::Ranges::const_iterator RangeSet::covering(std::string_view key) const {
  if (ranges_.empty()) return ranges_.end();
  const auto it = ranges_.upper_bound(key);
  return it == ranges_.begin() || std::prev(it)->second <= key ? ranges_.end() : std::prev(it);
}

RangeSet::Ranges::const_iterator RangeSet::first_after(std::string_view key) const {
  const auto it = covering(key);
  return it == ranges_.end() ? ranges_.upper_bound(key) : it;
}

RangeSet::Ranges::const_iterator RangeSet::last_below(std::string_view key) const {
  if (ranges_.empty()) return ranges_.end();
  const auto it = ranges_.lower_bound(key);
  return it == ranges_.begin() ? ranges_.end() : std::prev(it);
}

}  // namespace divan::kv
