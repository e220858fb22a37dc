#include "divan/kv/embedded/gaps.h"

namespace divan::kv::embedded {
namespace {

// Of more queues than this at once, the ones whose keys come last do without.
constexpr std::size_t kMaxGaps = 1000;
constexpr std::size_t kMaxFindings = 100;

}  // namespace

std::string Gaps::first_row_at_or_after(std::string_view begin, Version version) const {
  if (has_gaps_.load(std::memory_order_acquire)) {
    std::lock_guard lock(mutex_);
    auto gap = gaps_.upper_bound(begin);
    if (gap != gaps_.begin()) {
      --gap;
      if (begin < gap->second.end && gap->second.since <= version) return gap->second.end;
    }
  }
  return std::string(begin);
}

void Gaps::found(std::string_view begin, std::string_view end, Version version, std::size_t passed) {
  if (passed < least_passed_ || begin >= end) return;
  Finding finding{std::string(begin), std::string(end), version};
  std::lock_guard lock(mutex_);
  if (last_version_ == version) {
    insert(finding);
  } else if (findings_.size() < kMaxFindings) {
    findings_.push_back(std::move(finding));
  }
}

void Gaps::begin_group(const ConflictSet& written) {
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

void Gaps::end_group(Version version) {
  std::lock_guard lock(mutex_);
  last_version_ = version;
}

void Gaps::insert(const Finding& finding) {
  auto next = gaps_.upper_bound(finding.begin);
  if (next != gaps_.begin() && std::prev(next)->second.end >= finding.begin) --next;
  // Gaps that touch become one, which is known from the later version on.
  std::string begin = finding.begin;
  std::string end = finding.end;
  Version since = finding.version;
  while (next != gaps_.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second.end);
    since = std::max(since, next->second.since);
    next = gaps_.erase(next);
  }
  gaps_.emplace(std::move(begin), Gap{std::move(end), since});
  if (gaps_.size() > kMaxGaps) gaps_.erase(std::prev(gaps_.end()));
  has_gaps_.store(true, std::memory_order_release);
}

void Gaps::row_written(std::string_view key) {
  if (!has_gaps_.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(mutex_);
  auto gap = gaps_.upper_bound(key);
  if (gap == gaps_.begin() || std::prev(gap)->second.end <= key) return;
  --gap;
  if (gap->first == key) {
    gaps_.erase(gap);
  } else {
    gap->second.end = key;
  }
  has_gaps_.store(!gaps_.empty(), std::memory_order_release);
}

}  // namespace divan::kv::embedded
