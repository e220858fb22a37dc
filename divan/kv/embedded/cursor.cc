#include "divan/kv/embedded/cursor.h"

#include <rocksdb/perf_context.h>
#include <rocksdb/perf_level.h>

#include "divan/kv/embedded/key_prefix.h"

namespace divan::kv::embedded {
namespace {

// The part of the range before the first key (with `reverse`, after the last key) that one of the
// transaction's versionstamped keys may become.
KeyRange readable(const WriteMap& writes, KeyRange range, bool reverse) {
  const RangeSet& unreadable = writes.unreadable();
  if (unreadable.empty()) return range;
  if (!reverse) {
    const auto next = unreadable.first_after(range.begin);
    if (next != unreadable.end()) range.end = std::min(range.end, std::max(range.begin, next->first));
  } else {
    const auto next = unreadable.last_below(range.end);
    if (next != unreadable.end()) range.begin = std::max(range.begin, std::min(range.end, next->second));
  }
  return range;
}

}  // namespace

Cursor::Cursor(const Snapshot& snapshot, const WriteMap& writes, const KeyRange& range, bool reverse,
               Reads reads, PrefixIterator& prefixes)
    : writes_(writes),
      readable_(readable(writes, range, reverse)),
      is_whole_(readable_.begin == range.begin && readable_.end == range.end),
      reverse_(reverse),
      lower_(readable_.begin),
      upper_(readable_.end),
      prefixes_(prefixes),
      within_prefix_(!reverse && share_filter_prefix(readable_.begin, readable_.end)),
      stored_(!within_prefix_ ? snapshot.iterate(&lower_, &upper_, reverse, reads)
              : prefixes_     ? std::move(prefixes_)
                              : snapshot.iterate_prefixes(reads)) {
  find_points();
  if (reverse_) {
    stored_->SeekToLast();
    is_moved_ = true;
  } else {
    seek_first(snapshot);
  }
}

void Cursor::find_points() {
  const auto& points = writes_.points();
  changes_ = writes_.changes();
  first_point_ = points.lower_bound(readable_.begin);
  last_point_ = points.lower_bound(readable_.end);
  if (!is_at_row_) {
    point_ = reverse_ ? last_point_ : first_point_;
  } else {
    point_ = reverse_ ? points.lower_bound(key_) : points.upper_bound(key_);
  }
}

void Cursor::seek_first(const Snapshot& snapshot) {
  const std::uint64_t before = rocksdb::get_perf_context()->internal_delete_skipped_count;
  const std::string begin =
      snapshot.empty_ranges().first_row_at_or_after(readable_.begin, snapshot.version());
  if (begin >= readable_.end) return;
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kEnableCount);
  stored_->Seek(begin);
  is_moved_ = true;
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
  const std::string_view end = has_stored() ? view(stored_->key()) : std::string_view(readable_.end);
  if (!stored_->Valid()) check_status(stored_->status());
  snapshot.empty_ranges().found(begin, end, snapshot.version(),
                                rocksdb::get_perf_context()->internal_delete_skipped_count - before);
}

bool Cursor::next() {
  if (changes_ != writes_.changes()) find_points();
  if (stored_is_used_up_) advance_stored();
  stored_is_used_up_ = false;
  is_at_row_ = reverse_ ? next_backward() : next_forward();
  if (is_at_row_) return true;
  if (!is_whole_) throw Error(ErrorCode::accessed_unreadable);
  return false;
}

void Cursor::advance_stored() {
  if (reverse_) {
    stored_->Prev();
  } else {
    stored_->Next();
  }
}

void Cursor::skip_cleared() {
  while (has_stored() && !writes_.cleared().empty()) {
    const std::string_view key = view(stored_->key());
    const auto cleared = writes_.cleared().covering(key);
    if (cleared == writes_.cleared().end()) break;
    if (!reverse_ && cleared->second >= readable_.end) {
      is_moved_ = false;
      return;
    }
    if (!reverse_) {
      stored_->Seek(cleared->second);
      continue;
    }
    stored_->SeekForPrev(cleared->first);
    if (stored_->Valid() && view(stored_->key()) == cleared->first) stored_->Prev();
  }
  if (is_moved_ && !stored_->Valid()) check_status(stored_->status());
}

bool Cursor::take_point(const WriteMap::Points::value_type& point, const std::optional<std::string>& stored) {
  auto value = value_after(point.second, stored);
  if (!value) return false;
  point_key_ = point.first;
  point_value_ = std::move(*value);
  key_ = point_key_;
  value_ = point_value_;
  return true;
}

void Cursor::take_stored() {
  key_ = view(stored_->key());
  value_ = view(stored_->value());
  stored_is_used_up_ = true;
}

bool Cursor::next_forward() {
  for (;;) {
    skip_cleared();
    const bool has_point = point_ != last_point_;
    const bool has_row = has_stored();
    if (!has_row && !has_point) return false;
    const int order = !has_point ? -1 : !has_row ? 1 : view(stored_->key()).compare(point_->first);
    if (order < 0) {
      take_stored();
      return true;
    }
    std::optional<std::string> stored;
    if (order == 0) {
      if (point_->second.kind == PointWrite::Kind::atomic) stored = stored_->value().ToString();
      stored_->Next();
    }
    if (take_point(*point_++, stored)) return true;
  }
}

bool Cursor::next_backward() {
  for (;;) {
    skip_cleared();
    const bool has_point = point_ != first_point_;
    const bool has_row = has_stored();
    if (!has_row && !has_point) return false;
    const int order = !has_point ? 1 : !has_row ? -1 : view(stored_->key()).compare(std::prev(point_)->first);
    if (order > 0) {
      take_stored();
      return true;
    }
    --point_;
    std::optional<std::string> stored;
    if (order == 0) {
      if (point_->second.kind == PointWrite::Kind::atomic) stored = stored_->value().ToString();
      stored_->Prev();
    }
    if (take_point(*point_, stored)) return true;
  }
}

}  // namespace divan::kv::embedded
