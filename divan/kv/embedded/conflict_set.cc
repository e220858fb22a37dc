#include "divan/kv/embedded/conflict_set.h"

#include "divan/base/check.h"

namespace divan::kv::embedded {
namespace {

// How many points are added between two steps of the sweep.
constexpr std::size_t kSweepEvery = 64;
// Fewer ranges than this are not worth a sweep.
constexpr std::size_t kMinRanges = 64;
// Of an entry's memory, what is not its key: its part of a node, and the allocator's part of the key.
constexpr std::size_t kEntryBytes = 64;

}  // namespace

void ConflictSet::add_point(std::string_view key, Version version) {
  if (points_.set(key, version)) bytes_ += key.size() + kEntryBytes;
  if (++added_since_sweep_ >= kSweepEvery) {
    added_since_sweep_ = 0;
    sweep_points(2 * kSweepEvery);
  }
}

void ConflictSet::add_range(std::string_view begin, std::string_view end, Version version) {
  if (begin >= end) return;
  // The keys from `end` on keep the version that they had.
  const auto after = ranges_.upper_bound(end);
  const Version version_at_end = after == ranges_.begin() ? 0 : std::prev(after)->second;
  for (auto it = ranges_.lower_bound(begin); it != ranges_.end() && it->first <= end;)
    it = erase(ranges_, it);
  set(ranges_, ranges_.lower_bound(begin), begin, version);
  set(ranges_, ranges_.lower_bound(end), end, version_at_end);
  DIVAN_CHECK(version_at_end <= version, "version {} is written after version {}", version, version_at_end);
}

// `hint`: the first entry whose key is not below `key`.
void ConflictSet::set(Entries& entries, Entries::iterator hint, std::string_view key, Version version) {
  if (hint != entries.end() && hint->first == key) {
    hint->second = version;
    return;
  }
  entries.emplace_hint(hint, key, version);
  bytes_ += key.size() + kEntryBytes;
}

ConflictSet::Entries::iterator ConflictSet::erase(Entries& entries, Entries::iterator entry) {
  DIVAN_CHECK(bytes_ >= entry->first.size() + kEntryBytes, "an entry of {} bytes in a set of {}",
              entry->first.size() + kEntryBytes, bytes_);
  bytes_ -= entry->first.size() + kEntryBytes;
  return entries.erase(entry);
}

bool ConflictSet::changed_since(std::string_view begin, std::string_view end, Version version) const {
  const bool is_key = end.empty();
  if (is_key ? points_.changed_since(begin, version) : points_.changed_since(begin, end, version))
    return true;
  auto it = ranges_.upper_bound(begin);
  if (it != ranges_.begin() && std::prev(it)->second > version) return true;
  if (is_key) return false;
  for (; it != ranges_.end() && it->first < end; ++it) {
    if (it->second > version) return true;
  }
  return false;
}

void ConflictSet::forget_before(Version oldest, bool at_once) {
  DIVAN_CHECK(oldest >= oldest_, "the oldest version falls from {} to {}", oldest_, oldest);
  oldest_ = oldest;
  if (at_once || ranges_.size() >= 2 * ranges_left_ + kMinRanges) sweep_ranges();
  if (at_once) points_.sweep_from_the_beginning();
  sweep_points(at_once ? SIZE_MAX : kSweepEvery);
}

void ConflictSet::sweep_ranges() {
  // An entry says nothing when it and the one before it are forgotten.
  Version before = 0;
  for (auto it = ranges_.begin(); it != ranges_.end();) {
    const Version version = it->second < oldest_ ? 0 : it->second;
    if (version == before) {
      it = erase(ranges_, it);
    } else {
      it->second = before = version;
      ++it;
    }
  }
  ranges_left_ = ranges_.size();
}

void ConflictSet::sweep_points(std::size_t steps) {
  const std::size_t before = points_.size();
  const std::size_t swept = points_.sweep(steps, oldest_);
  DIVAN_CHECK(points_.size() <= before, "{} points after a sweep of {}", points_.size(), before);
  const std::size_t bytes = swept + (before - points_.size()) * kEntryBytes;
  DIVAN_CHECK(bytes <= bytes_, "points of {} bytes in a set of {}", bytes, bytes_);
  bytes_ -= bytes;
}

}  // namespace divan::kv::embedded
