// Range reads.
#include <fmt/core.h>

#include <algorithm>

#include "divan/base/rng.h"
#include "divan/kv/conformance/conformance.h"

namespace divan::kv::conformance {
namespace {

const KeyRange kAll = {"", "\xff"};

TEST_P(Conformance, RangesAreHalfOpen) {
  set_all("abcd");
  db.run([](Transaction& tx) {
    EXPECT_EQ(rows(tx, {"b", "d"}), "b=vb c=vc ");
    EXPECT_EQ(rows(tx, {"b", "b"}), "");
    EXPECT_EQ(rows(tx, {"", "b"}), "a=va ");
    EXPECT_EQ(rows(tx, {"d", "\xff"}), "d=vd ");
    EXPECT_EQ(rows(tx, {"x", "y"}), "");
  });
}

TEST_P(Conformance, TheSizeOfARangeIsRoughlyKnown) {
  // Not to be compressed.
  SeededRng rng(7);
  for (int part = 0; part < 8; ++part) {
    db.run([&](Transaction& tx) {
      for (int row = 0; row < 1000; ++row) tx.set(fmt::format("k{}{:03}", part, row), rng.bytes(900));
    });
  }
  const auto all = db.estimate_bytes(kAll);
  EXPECT_GT(all, 3'000'000);
  EXPECT_LT(all, 20'000'000);
  EXPECT_EQ(db.estimate_bytes({"x", "y"}), 0);
}

TEST_P(Conformance, LimitsTargetsAndMore) {
  db.run([](Transaction& tx) {
    for (int i = 0; i < 10; ++i) tx.set("k" + std::to_string(i), std::string(98, 'x'));
  });
  db.run([](Transaction& tx) {
    const KeyRange range = {"k", "l"};
    for (const bool reverse : {false, true}) {
      const auto page = [&](std::size_t limit, std::size_t bytes) {
        return tx.get_range(range, {.limit = limit, .target_bytes = bytes, .reverse = reverse});
      };
      EXPECT_EQ(page(3, 0).rows.size(), 3u);
      EXPECT_TRUE(page(3, 0).more);
      EXPECT_EQ(page(3, 0).rows[0].key, reverse ? "k9" : "k0");
      EXPECT_FALSE(page(11, 0).more);
      EXPECT_FALSE(page(0, 0).more);
      // The row that reaches the target is the last one.
      EXPECT_EQ(page(0, 250).rows.size(), 3u);
      EXPECT_TRUE(page(0, 250).more);
      EXPECT_EQ(page(0, 1).rows.size(), 1u);
      EXPECT_EQ(page(0, 300).rows.size(), 3u);
      EXPECT_EQ(page(0, 301).rows.size(), 4u);
      EXPECT_EQ(page(2, 900).rows.size(), 2u);
      EXPECT_FALSE(page(0, 1001).more);
    }
  });
}

// The pages of a range, each from where the last one ended, to the end; put together as one whole page.
std::string in_pages(Transaction& tx, KeyRange rest, const RangeOptions& options) {
  std::vector<KeyValue> found;
  for (bool more = true; more;) {
    const auto page = tx.get_range(rest, options);
    more = page.more;
    // A page is cut short where it reaches its limit or target, not before and not after.
    std::size_t bytes = 0, before_last = 0;
    for (const auto& row : page.rows) before_last = bytes, bytes += row.key.size() + row.value.size();
    const bool reached = (options.limit != 0 && page.rows.size() == options.limit) ||
                         (options.target_bytes != 0 && bytes >= options.target_bytes);
    EXPECT_EQ(more, reached);
    EXPECT_TRUE(options.limit == 0 || page.rows.size() <= options.limit);
    EXPECT_TRUE(options.target_bytes == 0 || page.rows.size() < 2 || before_last < options.target_bytes);
    if (page.rows.empty()) break;
    (options.reverse ? rest.end : rest.begin) =
        options.reverse ? page.rows.back().key : page.rows.back().key + '\0';
    found.insert(found.end(), page.rows.begin(), page.rows.end());
  }
  if (options.reverse) std::reverse(found.begin(), found.end());
  return text(found);
}

TEST_P(Conformance, PagesContinueWhereTheLastOneEnded) {
  const auto key = [](int i) { return fmt::format("k{:02}", i); };
  db.run([&](Transaction& tx) {
    for (int i = 0; i < 50; i += 2) tx.set(key(i), std::string(static_cast<std::size_t>(i), 's'));
  });
  const auto write = [&](Transaction& tx) {
    for (int i = 1; i < 50; i += 4) tx.set(key(i), "own");
    tx.clear_range("", key(5));
    tx.clear_range(key(20), key(30));
    tx.set(key(24), "again");
    tx.clear(key(36));
    tx.set(key(38), "other");
    tx.atomic(AtomicOp::byte_max, key(40), "t");
    tx.clear_range(key(46), "l");
    tx.set("l", "beyond");
  };
  std::string expected;
  for (const int i :
       {5, 6, 8, 9, 10, 12, 13, 14, 16, 17, 18, 24, 30, 32, 33, 34, 37, 38, 40, 41, 42, 44, 45}) {
    expected += key(i) + "=" +
                (i == 24      ? "again"
                 : i == 38    ? "other"
                 : i == 40    ? "t"
                 : i % 2 == 1 ? "own"
                              : std::string(static_cast<std::size_t>(i), 's')) +
                " ";
  }
  const auto tx = db.begin();
  write(*tx);
  for (int committed = 0; committed < 2; ++committed) {
    const auto reader = committed == 0 ? nullptr : db.begin();
    for (const std::size_t limit : {0, 1, 2, 3, 7, 23}) {
      for (const std::size_t target_bytes : {0, 1, 6, 7, 20, 50, 100, 333}) {
        for (const bool reverse : {false, true}) {
          SCOPED_TRACE(fmt::format("limit {} bytes {} reverse {}", limit, target_bytes, reverse));
          EXPECT_EQ(in_pages(reader ? *reader : *tx, {"k", "l"},
                             {.limit = limit, .target_bytes = target_bytes, .reverse = reverse}),
                    expected);
        }
      }
    }
    if (committed == 0) tx->commit();
  }
}

TEST_P(Conformance, AVisitorEndsTheScan) {
  set_all("abcd");
  db.run([](Transaction& tx) {
    int seen = 0;
    EXPECT_FALSE(tx.scan(kAll, {}, [&](auto, auto) { return ++seen < 2; }));
    EXPECT_EQ(seen, 2);
    seen = 0;
    EXPECT_FALSE(tx.scan(kAll, {.limit = 2}, [&](auto, auto) { return ++seen < 2; }));
    EXPECT_EQ(seen, 2);
    // The limit is reached; whether more rows follow was not checked.
    EXPECT_TRUE(tx.get_range(kAll, {.limit = 4}).more);
    EXPECT_TRUE(tx.get_range(kAll, {.limit = 4, .reverse = true}).more);
  });
}

TEST_P(Conformance, LimitsCountOwnRowsAndSkipOwnClears) {
  set_all("aceg");
  db.run([](Transaction& tx) {
    tx.set("b", "own");
    tx.clear("c");
    tx.set("h", "own");
    EXPECT_EQ(rows(tx, kAll, {.limit = 3}), "a=va b=own e=ve ");
    EXPECT_EQ(rows(tx, kAll, {.limit = 3, .reverse = true}), "h=own g=vg e=ve ");
    EXPECT_EQ(rows(tx, {"b", "e"}), "b=own ");
    EXPECT_EQ(rows(tx, {"b", "e"}, {.reverse = true}), "b=own ");
  });
}

TEST_P(Conformance, InvertedAndForeignRangesAreRefused) {
  db.run([](Transaction& tx) {
    EXPECT_EQ(code_of([&] { tx.get_range({"b", "a"}); }), ErrorCode::inverted_range);
    EXPECT_EQ(code_of([&] {
                tx.scan(KeyRange{"b", "a"}, {}, [](auto, auto) { return true; });
              }),
              ErrorCode::inverted_range);
    EXPECT_EQ(code_of([&] { tx.clear_range("b", "a"); }), ErrorCode::inverted_range);
    EXPECT_EQ(code_of([&] { tx.add_read_conflict({"b", "a"}); }), ErrorCode::inverted_range);
    EXPECT_EQ(code_of([&] { tx.add_write_conflict({"b", "a"}); }), ErrorCode::inverted_range);
    EXPECT_EQ(code_of([&] { tx.get_range({"a", "\xff\x01"}); }), ErrorCode::key_outside_legal_range);
    EXPECT_EQ(code_of([&] { tx.clear_range("a", "\xff\x01"); }), ErrorCode::key_outside_legal_range);
    EXPECT_EQ(code_of([&] { tx.add_read_conflict({"a", "\xff\x01"}); }), ErrorCode::key_outside_legal_range);
    EXPECT_EQ(code_of([&] { tx.add_write_conflict({"a", "\xff\x01"}); }), ErrorCode::key_outside_legal_range);
    EXPECT_EQ(code_of([&] { tx.get("\xff/version"); }), ErrorCode::key_outside_legal_range);
    EXPECT_EQ(code_of([&] { tx.get("\xff"); }), ErrorCode::key_outside_legal_range);
    const std::vector<std::string> keys = {"\xff"};
    EXPECT_EQ(code_of([&] { tx.get_many(keys); }), ErrorCode::key_outside_legal_range);
    tx.clear_range("", "\xff");
    tx.get_range(kAll);
  });
}

}  // namespace
}  // namespace divan::kv::conformance
