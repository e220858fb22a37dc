#include "divan/kv/embedded/empty_ranges.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <rocksdb/perf_context.h>

#include <set>

#include "divan/kv/embedded/temporary_store.h"

namespace divan::kv::embedded {
namespace {

using Keys = std::set<std::string>;

// A store that remembers its rows at all versions, with its empty ranges as the committer keeps them.
struct History {
  EmptyRanges ranges{1};
  ConflictSet written;
  std::vector<Keys> at{Keys()};
  std::function<void()> meanwhile;

  Version version() const { return static_cast<Version>(at.size()) - 1; }

  void commit(const std::string& key, bool present) {
    ranges.begin_group(written);
    at.push_back(at.back());
    if (present) {
      ranges.row_written(key);
      at.back().insert(key);
    } else {
      at.back().erase(key);
    }
    written.add_point(key, version());
    // Scans that run meanwhile read earlier versions.
    if (meanwhile) meanwhile();
    ranges.end_group(version());
  }

  // Scans as a cursor does; the row that it finds first.
  std::string scan(const std::string& begin, const std::string& end, Version read) {
    const std::string start = ranges.first_row_at_or_after(begin, read);
    if (start >= end) return end;
    const Keys& rows = at[static_cast<std::size_t>(read)];
    const auto row = rows.lower_bound(start);
    const std::string found = row == rows.end() ? end : std::min(*row, end);
    ranges.found(start, found, read, 1);
    return found;
  }
};

std::string any_key() { return fmt::format("{:02}", *rc::gen::inRange(0, 20)); }

RC_GTEST_PROP(EmptyRanges, NoRowIsEverPassedOver, ()) {
  History history;
  const auto check_scan = [&](Version last_version) {
    const Version read = std::max<Version>(0, last_version - *rc::gen::inRange<Version>(0, 4));
    const std::string begin = any_key();
    const std::string end = *rc::gen::inRange(0, 2) == 0 ? "~" : begin + "5";
    const Keys& rows = history.at[static_cast<std::size_t>(read)];
    const auto row = rows.lower_bound(begin);
    RC_ASSERT(history.scan(begin, end, read) == (row == rows.end() ? end : std::min(*row, end)));
  };
  history.meanwhile = [&] {
    if (*rc::gen::inRange(0, 2) == 0) check_scan(history.version() - 1);
  };
  const int steps = *rc::gen::inRange(1, 200);
  for (int i = 0; i < steps; ++i) {
    if (*rc::gen::inRange(0, 2) == 0) {
      history.commit(any_key(), *rc::gen::inRange(0, 3) == 0);
    } else {
      check_scan(history.version());
    }
  }
}

TEST(EmptyRanges, RangesThatTouchBecomeOne) {
  History history;
  for (const char* key : {"a", "b", "c", "d"}) history.commit(key, true);
  history.commit("a", false);
  EXPECT_EQ(history.scan("", "z", history.version()), "b");
  history.commit("b", false);
  EXPECT_EQ(history.scan("", "z", history.version()), "c");
  history.commit("x", true);
  EXPECT_EQ(history.ranges.first_row_at_or_after("", history.version()), "c");
}

TEST(EmptyRanges, WhatWasWrittenSinceTheScanMakesNone) {
  History history;
  history.commit("c", true);
  history.scan("", "z", history.version());
  history.commit("b", true);
  history.scan("", "z", history.version() - 1);
  history.commit("x", true);
  EXPECT_EQ(history.ranges.first_row_at_or_after("", history.version()), "b");
}

// Rows that the present scan of a range passes over.
std::uint64_t passed(Database& db, const KeyRange& range) {
  const auto count = [] { return rocksdb::get_perf_context()->internal_delete_skipped_count; };
  const auto before = count();
  db.run([&](Transaction& tx) { tx.get_range(range, {.limit = 1}); });
  return count() - before;
}

TEST(EmptyRanges, AQueueIsPassedOverOnce) {
  TemporaryStore store;
  const KeyRange queue{"q", "r"};
  const auto key = [](int i) { return fmt::format("q{:05}", i); };
  store->run([&](Transaction& tx) {
    for (int i = 0; i < 3000; ++i) tx.set(key(i), "");
  });
  for (int first = 0; first < 3000; first += 1000) {
    store->run([&](Transaction& tx) {
      for (int i = first; i < first + 1000; ++i) tx.clear(key(i));
    });
    EXPECT_EQ(passed(*store, queue), 1000u);  // those that were deleted since the last scan
    EXPECT_EQ(passed(*store, queue), 0u);
  }
  // Into the empty range: the part before the row stays known.
  store->run([&](Transaction& tx) { tx.set(key(2000), ""); });
  EXPECT_EQ(passed(*store, queue), 0u);
  EXPECT_EQ(store->run([&](Transaction& tx) { return tx.get_range(queue, {}).rows.size(); }), 1u);
}

}  // namespace
}  // namespace divan::kv::embedded
