#include "divan/kv/embedded/conflict_set.h"

namespace divan::kv::embedded {
namespace {

// How many points are added between two steps of the sweep.
constexpr std::size_t kSweepEvery = 64;
// Fewer ranges than this are not worth a sweep.
constexpr std::size_t kMinRanges = 64;

}  // namespace

void ConflictSet::add_point(std::string_view key, Version version) {
  // Keys come in order within a transaction, and a feed's keys grow: the end is a good guess.
  const auto next = points_.lower_bound(key);
  if (next != points_.end() && next->first == key) {
    next->second = version;
  } else {
    points_.emplace_hint(next, key, version);
  }
  if (++added_since_sweep_ >= kSweepEvery) {
    added_since_sweep_ = 0;
    sweep_points(2 * kSweepEvery);
  }
}

void ConflictSet::add_range(std::string_view begin, std::string_view end, Version version) {
  if (begin >= end) return;
  // The keys from `end` on keep the version that they had.
  auto after = ranges_.upper_bound(end);
  const Version version_at_end = after == ranges_.begin() ? 0 : std::prev(after)->second;
  ranges_.erase(ranges_.lower_bound(begin), after);
  ranges_.insert_or_assign(std::string(begin), version);
  ranges_.insert_or_assign(std::string(end), version_at_end);
}

bool ConflictSet::changed_since(std::string_view begin, std::string_view end, Version version) const {
  if (end.empty()) {
    const auto point = points_.find(begin);
    if (point != points_.end() && point->second > version) return true;
  } else {
    for (auto it = points_.lower_bound(begin); it != points_.end() && it->first < end; ++it) {
      if (it->second > version) return true;
    }
  }
  auto it = ranges_.upper_bound(begin);
  if (it != ranges_.begin() && std::prev(it)->second > version) return true;
  if (end.empty()) return false;
  for (; it != ranges_.end() && it->first < end; ++it) {
    if (it->second > version) return true;
  }
  return false;
}

void ConflictSet::forget_before(Version oldest, bool at_once) {
  oldest_ = oldest;
  if (at_once || ranges_.size() >= 2 * ranges_left_ + kMinRanges) sweep_ranges();
  if (at_once) sweep_cursor_.clear();
  sweep_points(at_once ? points_.size() : kSweepEvery);
}

void ConflictSet::sweep_ranges() {
  // An entry says nothing when it and the one before it are forgotten.
  Version before = 0;
  for (auto it = ranges_.begin(); it != ranges_.end();) {
    const Version version = it->second < oldest_ ? 0 : it->second;
    if (version == before) {
      it = ranges_.erase(it);
    } else {
      it->second = before = version;
      ++it;
    }
  }
  ranges_left_ = ranges_.size();
}

void ConflictSet::sweep_points(std::size_t steps) {
  auto it = points_.lower_bound(sweep_cursor_);
  while (steps-- > 0 && it != points_.end()) {
    if (it->second < oldest_) {
      it = points_.erase(it);
    } else {
      ++it;
    }
  }
  sweep_cursor_ = it == points_.end() ? std::string() : it->first;
}

}  // namespace divan::kv::embedded
