#include "divan/kv/embedded/empty_ranges.h"

namespace divan::kv::embedded {
namespace {

// Of more queues than this at once, the ones whose keys come last do without.
constexpr std::size_t kMaxGaps = 1000;
constexpr std::size_t kMaxFindings = 100;

}  // namespace

std::string EmptyRanges::first_row_at_or_after(std::string_view begin, Version version) const {
  if (has_gaps_.load(std::memory_order_acquire)) {
    std::lock_guard lock(mutex_);
    auto gap = empty_ranges_.upper_bound(begin);
    if (gap != empty_ranges_.begin()) {
      --gap;
      if (begin < gap->second.end && gap->second.since <= version) return gap->second.end;
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
  auto next = empty_ranges_.upper_bound(finding.begin);
  if (next != empty_ranges_.begin() && std::prev(next)->second.end >= finding.begin) --next;
  // EmptyRanges that touch become one, which is known from the later version on.
  std::string begin = finding.begin;
  std::string end = finding.end;
  Version since = finding.version;
  while (next != empty_ranges_.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second.end);
    since = std::max(since, next->second.since);
    next = empty_ranges_.erase(next);
  }
  empty_ranges_.emplace(std::move(begin), Gap{std::move(end), since});
  if (empty_ranges_.size() > kMaxGaps) empty_ranges_.erase(std::prev(empty_ranges_.end()));
  has_gaps_.store(true, std::memory_order_release);
}

void EmptyRanges::row_written(std::string_view key) {
  if (!has_gaps_.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(mutex_);
  auto gap = empty_ranges_.upper_bound(key);
  if (gap == empty_ranges_.begin() || std::prev(gap)->second.end <= key) return;
  --gap;
  if (gap->first == key) {
    empty_ranges_.erase(gap);
  } else {
    gap->second.end = key;
  }
  has_gaps_.store(!empty_ranges_.empty(), std::memory_order_release);
}

}  // namespace divan::kv::embedded
