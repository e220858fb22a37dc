#include "divan/kv/fdb/prefetched.h"

#include <algorithm>

namespace divan::kv::fdb {
namespace {

// Returns true if a scan of `range` begins within `covered`.
bool begins_in(const KeyRange& covered, const KeyRange& range, bool reverse) {
  if (!reverse) return covered.contains(range.begin);
  return covered.begin < range.end && range.end <= covered.end;
}

bool overlap(const KeyRange& range, std::string_view begin, std::string_view end) {
  return range.begin < end && begin < range.end;
}

}  // namespace

void Prefetched::ask(const Prefetch& reads, const RangeSet& unreadable) {
  Wave wave;
  const auto is_hidden = [&](const KeyRange& range) {
    const auto hidden = unreadable.first_after(range.begin);
    return hidden != unreadable.end() && hidden->first < range.end;
  };
  for (const auto& key : reads.keys) {
    if (wave.values.contains(key) || is_hidden({key, key + '\0'})) continue;
    wave.values.emplace(key, tx_.get(subspace_.in_cluster(key), true));
  }
  for (const auto& asked : reads.ranges) {
    if (asked.range.begin >= asked.range.end || is_hidden(asked.range)) continue;
    wave.pages.push_back({asked, tx_.get_range({.begin = subspace_.in_cluster(asked.range.begin),
                                                .end = subspace_.in_cluster(asked.range.end),
                                                .limit = static_cast<int>(asked.limit),
                                                .mode = StreamingMode::want_all,
                                                .reverse = asked.reverse})});
  }
  if (!wave.values.empty() || !wave.pages.empty()) waves_.push_back(std::move(wave));
}

void Prefetched::forget() {
  waves_.clear();
  values_.clear();
  rows_.clear();
}

void Prefetched::written(std::string_view key) { written(key, std::string(key) + '\0'); }

void Prefetched::written(std::string_view begin, std::string_view end) {
  const auto erase_in = [&](auto& values) {
    values.erase(values.lower_bound(begin), values.lower_bound(end));
  };
  for (auto& wave : waves_) {
    erase_in(wave.values);
    std::erase_if(wave.pages, [&](const auto& page) { return overlap(page.asked.range, begin, end); });
  }
  erase_in(values_);
  // They do not overlap each other.
  auto first = rows_.upper_bound(begin);
  if (first != rows_.begin() && std::prev(first)->second.covered.end > begin) --first;
  rows_.erase(first, rows_.lower_bound(end));
}

template <class Wanted>
void Prefetched::wait_for(const Wanted& wanted) {
  for (auto wave = waves_.begin(); wave != waves_.end();) {
    if (!wanted(*wave)) {
      ++wave;
      continue;
    }
    wait(*wave);
    wave = waves_.erase(wave);
  }
}

void Prefetched::wait(const Wave& wave) {
  const auto is_late = [](const Future& answer) { return !answer.is_ready(); };
  if (std::any_of(wave.values.begin(), wave.values.end(),
                  [&](const auto& one) { return is_late(one.second); }) ||
      std::any_of(wave.pages.begin(), wave.pages.end(), [&](const auto& one) { return is_late(one.answer); }))
    tx_.cluster().count_round_trip();
  for (const auto& [key, answer] : wave.values) {
    if (tx_.cluster().outcome_of(answer) == 0) values_.insert_or_assign(key, tx_.value_in(answer));
  }
  for (const auto& page : wave.pages) {
    if (tx_.cluster().outcome_of(page.answer) == 0) keep(page);
  }
}

void Prefetched::keep(const Wave::Page& page) {
  bool more = false;
  const auto answer = tx_.rows_in(page.answer, more);
  Rows rows{.covered = page.asked.range, .rows = {}};
  rows.rows.reserve(answer.size());
  for (const auto& row : answer) {
    rows.rows.push_back({std::string(view(row.key, row.key_length).substr(subspace_.prefix_bytes())),
                         std::string(view(row.value, row.value_length))});
  }
  if (more || (page.asked.limit != 0 && rows.rows.size() == page.asked.limit)) {
    if (rows.rows.empty()) return;
    const std::string& last = rows.rows.back().key;
    (page.asked.reverse ? rows.covered.begin : rows.covered.end) = page.asked.reverse ? last : last + '\0';
  }
  if (page.asked.reverse) std::reverse(rows.rows.begin(), rows.rows.end());
  // Of two that overlap the first one stays.
  const auto next = rows_.lower_bound(rows.covered.begin);
  if (next != rows_.end() && next->first < rows.covered.end) return;
  if (next != rows_.begin() && std::prev(next)->second.covered.end > rows.covered.begin) return;
  std::string begin = rows.covered.begin;
  rows_.emplace_hint(next, std::move(begin), std::move(rows));
}

void Prefetched::keep(std::string_view key, const std::optional<std::string>& value) {
  values_.insert_or_assign(std::string(key), value);
}

const std::optional<std::string>* Prefetched::find(std::string_view key) {
  wait_for([&](const Wave& wave) { return wave.values.find(key) != wave.values.end(); });
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

const Prefetched::Rows* Prefetched::find(const KeyRange& range, bool reverse) {
  wait_for([&](const Wave& wave) {
    return std::any_of(wave.pages.begin(), wave.pages.end(),
                       [&](const auto& page) { return begins_in(page.asked.range, range, reverse); });
  });
  return covering(range, reverse);
}

const Prefetched::Rows* Prefetched::covering(const KeyRange& range, bool reverse) const {
  const auto after = reverse ? rows_.lower_bound(range.end) : rows_.upper_bound(range.begin);
  if (after == rows_.begin()) return nullptr;
  const Rows& rows = std::prev(after)->second;
  return begins_in(rows.covered, range, reverse) ? &rows : nullptr;
}

}  // namespace divan::kv::fdb
