#include "divan/kv/embedded/empty_ranges.h"

#include "divan/base/check.h"

namespace divan::kv::embedded {
namespace {

// The ranges with the last keys are dropped beyond this.
constexpr std::size_t kMaxRanges = 1000;
constexpr std::size_t kMaxFindings = 100;

}  // namespace

std::string EmptyRanges::first_row_at_or_after(std::string_view begin, Version version) const {
  if (has_ranges_.load(std::memory_order_acquire)) {
    std::lock_guard lock(mutex_);
    auto range = ranges_.upper_bound(begin);
    if (range != ranges_.begin()) {
      --range;
      if (begin < range->second.end && range->second.since <= version) return range->second.end;
    }
  }
  return std::string(begin);
}

void EmptyRanges::found(std::string_view begin, std::string_view end, Version version, std::size_t passed) {
  if (passed < least_passed_ || begin >= end) return;
  Finding finding{std::string(begin), std::string(end), version};
  std::lock_guard lock(mutex_);
  if (last_version_ == version) {
    insert(finding);
  } else if (findings_.size() < kMaxFindings) {
    findings_.push_back(std::move(finding));
  }
}

void EmptyRanges::begin_group(const ConflictSet& written) {
  std::lock_guard lock(mutex_);
  last_version_.reset();
  for (const auto& finding : findings_) {
    if (written.remembers_since(finding.version) &&
        !written.changed_since(finding.begin, finding.end, finding.version)) {
      insert(finding);
    }
  }
  findings_.clear();
}

void EmptyRanges::end_group(Version version) {
  std::lock_guard lock(mutex_);
  last_version_ = version;
}

void EmptyRanges::insert(const Finding& finding) {
  DIVAN_CHECK(finding.begin < finding.end, "an empty range ends before it begins");
  auto next = ranges_.upper_bound(finding.begin);
  if (next != ranges_.begin() && std::prev(next)->second.end >= finding.begin) --next;
  // Ranges that touch become one, with the later `since`.
  std::string begin = finding.begin;
  std::string end = finding.end;
  Version since = finding.version;
  while (next != ranges_.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second.end);
    since = std::max(since, next->second.since);
    next = ranges_.erase(next);
  }
  ranges_.emplace(std::move(begin), EmptyRange{std::move(end), since});
  if (ranges_.size() > kMaxRanges) ranges_.erase(std::prev(ranges_.end()));
  has_ranges_.store(true, std::memory_order_release);
}

void EmptyRanges::row_written(std::string_view key) {
  if (!has_ranges_.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(mutex_);
  auto range = ranges_.upper_bound(key);
  if (range == ranges_.begin() || std::prev(range)->second.end <= key) return;
  --range;
  if (range->first == key) {
    ranges_.erase(range);
  } else {
    range->second.end = key;
  }
  has_ranges_.store(!ranges_.empty(), std::memory_order_release);
}

}  // namespace divan::kv::embedded
