// A prefetch changes neither results nor conflicts.
#include <fmt/core.h>

#include "divan/kv/conformance/conformance.h"
#include "divan/kv/model/program.h"

namespace divan::kv::conformance {
namespace {

Prefetch everything(std::size_t limit = 0, bool reverse = false) {
  Prefetch reads;
  for (const char key : std::string_view("abcdef")) reads.key(std::string(1, key));
  reads.range({"a", "f"}, limit, reverse);
  return reads;
}

Prefetch random_prefetch(Rng& rng) {
  Prefetch reads;
  for (std::uint64_t i = rng.below(4); i > 0; --i) reads.key(model::random_key(rng));
  for (std::uint64_t i = rng.below(4); i > 0; --i)
    reads.range({model::random_key(rng), model::random_key(rng)}, rng.below(4), rng.below(2) == 0);
  return reads;
}

TEST_P(Conformance, PrefetchedRowsConflictOnlyIfTheyAreRead) {
  set_all("bcd");
  const auto after = [](const Step& read, std::size_t limit = 0, bool reverse = false) {
    return [=](Transaction& tx) {
      tx.prefetch(everything(limit, reverse));
      read(tx);
    };
  };
  EXPECT_TRUE(survives(after([](Transaction&) {}), writes("c")));
  const Step get = [](Transaction& tx) { tx.get("c"); };
  EXPECT_FALSE(survives(after(get), writes("c")));
  EXPECT_TRUE(survives(after(get), writes("d")));
  EXPECT_TRUE(survives(after([](Transaction& tx) { tx.get("c", Isolation::snapshot); }), writes("c")));
  const std::vector<std::string> keys = {"b", "x"};
  EXPECT_FALSE(survives(after([&](Transaction& tx) { tx.get_many(keys); }), writes("b")));
  EXPECT_FALSE(survives(after([&](Transaction& tx) { tx.get_many(keys); }), writes("x")));
  const Step first = [](Transaction& tx) { tx.get_range(KeyRange{"a", "f"}, {.limit = 1}); };
  const Step last = [](Transaction& tx) { tx.get_range(KeyRange{"a", "f"}, {.limit = 1, .reverse = true}); };
  for (const std::size_t limit : {0, 1, 2}) {
    for (const bool reverse : {false, true}) {
      set_all("bcd");
      EXPECT_FALSE(survives(after(first, limit, reverse), writes("a")));
      EXPECT_TRUE(survives(after(first, limit, reverse), writes("e")));
      set_all("bcd");
      EXPECT_FALSE(survives(after(last, limit, reverse), writes("e")));
      EXPECT_TRUE(survives(after(last, limit, reverse), writes("a")));
    }
  }
}

TEST_P(Conformance, WhatATransactionWritesItReads) {
  set_all("bcd");
  db.run([&](Transaction& tx) {
    tx.prefetch(everything());
    EXPECT_EQ(tx.get("c"), "vc");
    tx.set("c", "new");
    tx.clear("d");
    tx.add("e", 1);
    EXPECT_EQ(tx.get("c"), "new");
    EXPECT_EQ(tx.get("d"), std::nullopt);
    EXPECT_EQ(decode_counter(tx.get("e")), 1);
    std::string keys;
    for (const auto& row : tx.get_range(KeyRange{"a", "f"}).rows) keys += row.key;
    EXPECT_EQ(keys, "bce");
    tx.prefetch(everything());
    tx.clear_range("a", "c");
    EXPECT_EQ(tx.get("b"), std::nullopt);
    EXPECT_EQ(tx.get_range(KeyRange{"a", "f"}).rows.size(), 2u);
  });
}

// Two transactions that make the same calls, except that one of them sometimes prefetches.
TEST_P(Conformance, PrefetchesChangeNoResult) {
  const auto seeds = model::seeds(60, 2'000, 1);
  for (std::uint64_t i = 0; i < seeds.count; ++i) {
    SCOPED_TRACE(fmt::format("DIVAN_SEED={}", seeds.at(i)));
    SeededRng rng(seeds.at(i));
    set_all(std::string_view("abcdefgh").substr(rng.below(8)));
    const auto plain = db.begin();
    const auto prefetching = db.begin();
    for (int step = 0; step < 30; ++step) {
      if (rng.below(4) == 0) prefetching->prefetch(random_prefetch(rng));
      const auto operation = model::random_operation(rng);
      ASSERT_EQ(model::perform(*plain, operation), model::perform(*prefetching, operation))
          << model::describe(operation);
    }
  }
}

}  // namespace
}  // namespace divan::kv::conformance
