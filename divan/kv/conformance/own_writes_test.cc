// A transaction sees its own writes, whatever they are and in whatever order they were made.
#include <fmt/core.h>

#include "divan/kv/conformance/conformance.h"

namespace divan::kv::conformance {
namespace {

TEST_P(Conformance, WhatIsCommittedIsThere) {
  set("a", "1");
  EXPECT_EQ(get("a"), "1");
  set("a", "");
  EXPECT_EQ(get("a"), "");  // an empty value is a value
  db.run([](Transaction& tx) { tx.clear("a"); });
  EXPECT_EQ(get("a"), "(none)");
}

TEST_P(Conformance, WhatIsNotCommittedIsNot) {
  const auto tx = db.begin();
  tx->set("a", "1");
  EXPECT_EQ(get("a"), "(none)");
}

TEST_P(Conformance, TheEmptyKeyIsAKey) {
  set("", "1");
  EXPECT_EQ(get(""), "1");
  EXPECT_EQ(stored(), "=1 ");
  EXPECT_FALSE(survives([](auto& tx) { tx.get(""); }, [](auto& tx) { tx.clear(""); }));
}

TEST_P(Conformance, KeysAreOrderedByUnsignedBytes) {
  db.run([](Transaction& tx) {
    for (const std::string key : {"a", "\x80", "\xfe", "a\x01", "B"}) tx.set(key, "");
    tx.set(std::string("a\0", 2), "");
  });
  EXPECT_EQ(stored(), "B= a= " + std::string("a\0", 2) + "= a\x01= \x80= \xfe= ");
}

TEST_P(Conformance, OneVersionIsRead) {
  set_all("ab");
  const auto tx = db.begin();
  const Version version = tx->read_version();
  set("a", "later");
  set("c", "later");
  db.run([](Transaction& other) { other.clear("b"); });
  EXPECT_EQ(tx->get("a"), "va");
  EXPECT_EQ(tx->get("b"), "vb");
  EXPECT_EQ(tx->get("c"), std::nullopt);
  EXPECT_EQ(rows(*tx, {"a", "z"}), "a=va b=vb ");
  EXPECT_EQ(rows(*tx, {"a", "z"}, {.isolation = Isolation::snapshot}), "a=va b=vb ");
  EXPECT_EQ(tx->read_version(), version);
  EXPECT_LT(version, db.begin()->read_version());
}

TEST_P(Conformance, TheVisitorOfAScanMayWrite) {
  const auto key = [](int i) { return fmt::format("k{:03}", i); };
  const auto value = [](int i) { return fmt::format("a value of the row {}, which is long", i); };
  for (const bool reverse : {false, true}) {
    // Half of the rows are stored, the others are written by the same transaction.
    db.run([&](Transaction& tx) {
      tx.clear_range("", "\xff");
      for (int i = 0; i < 100; i += 2) tx.set(key(i), value(i));
    });
    std::vector<std::string> visited;
    db.run([&](Transaction& tx) {
      visited.clear();
      for (int i = 1; i < 100; i += 2) tx.set(key(i), value(i));
      tx.scan({"k", "l"}, {.reverse = reverse}, [&](std::string_view row, std::string_view text) {
        // Before the range and after it, at the row, and before the row in the order of the scan.
        for (int i = 0; i < 30; ++i) {
          tx.set(fmt::format("a{}{}", row, i), text);
          tx.set(fmt::format("z{}{}", row, i), text);
        }
        visited.emplace_back(row);
        EXPECT_EQ(text, value(std::stoi(std::string(row.substr(1)))));
        tx.clear(row);
        if (reverse) tx.set(std::string(row) + "x", "");
        return true;
      });
      tx.clear_range("k", "l");
    });
    std::vector<std::string> expected;
    for (int i = 0; i < 100; ++i) expected.push_back(key(reverse ? 99 - i : i));
    EXPECT_EQ(visited, expected);
    const auto tx = db.begin();
    EXPECT_EQ(rows(*tx, {"k", "l"}), "");
    EXPECT_EQ(tx->get("ak0423"), value(42));
    EXPECT_EQ(tx->get("zk09929"), value(99));
  }
}

TEST_P(Conformance, ClearedRangesJoinAndAreWrittenOver) {
  set_all("abcdefgh");
  db.run([](Transaction& tx) {
    tx.clear_range("b", "d");
    tx.clear_range("e", "g");
    EXPECT_EQ(rows(tx, {"", "\xff"}), "a=va d=vd g=vg h=vh ");
    tx.clear_range("c", "f");  // over both
    tx.set("c", "new");
    tx.set("e", "new");
    tx.clear_range("e", "e");  // nothing
    tx.clear("h");
    const std::string expected = "a=va c=new e=new g=vg ";
    EXPECT_EQ(rows(tx, {"", "\xff"}), expected);
    EXPECT_EQ(rows(tx, {"", "\xff"}, {.reverse = true}), "g=vg e=new c=new a=va ");
    EXPECT_EQ(tx.get("d"), std::nullopt);
    const std::vector<std::string> keys = {"h", "a", "e", "b"};
    EXPECT_EQ(tx.get_many(keys), (std::vector<std::optional<std::string>>{{}, "va", "new", {}}));
  });
  EXPECT_EQ(stored(), "a=va c=new e=new g=vg ");
}

TEST_P(Conformance, ManyClearedKeysAreGone) {
  constexpr int kRows = 1000;
  const auto key = [](int i) { return fmt::format("k{:04}", i); };
  db.run([&](Transaction& tx) {
    for (int i = 0; i < kRows; ++i) tx.set(key(i), "x");
  });
  db.run([&](Transaction& tx) {
    tx.clear_range(key(100), key(900));
    tx.set(key(500), "again");
    EXPECT_EQ(tx.get_range({"k", "l"}).rows.size(), 201u);
  });
  EXPECT_EQ(db.run([](Transaction& tx) { return tx.get_range({"k", "l"}).rows.size(); }), 201u);
}

TEST_P(Conformance, AResetForgetsTheWrites) {
  const auto tx = db.begin();
  tx->set("a", "1");
  tx->clear_range("b", "c");
  set("other", "x");
  tx->reset();
  EXPECT_TRUE(tx->read_only());
  EXPECT_EQ(tx->approximate_size(), 0u);
  EXPECT_EQ(tx->get("a"), std::nullopt);
  EXPECT_EQ(tx->get("other"), "x");
  tx->commit();
  EXPECT_EQ(tx->committed_version(), -1);
  tx->reset();
  tx->set("b", "2");
  EXPECT_FALSE(tx->read_only());
  tx->commit();
  EXPECT_EQ(stored(), "b=2 other=x ");
}

TEST_P(Conformance, ADumpHasTheRowsOfOneVersion) {
  set_all("ab");
  std::string seen;
  const Version version = db.dump([&](std::string_view key, std::string_view value) {
    if (seen.empty()) set("c", "later");
    seen.append(key).append("=").append(value).append(" ");
    return true;
  });
  EXPECT_EQ(seen, "a=va b=vb ");
  int rows = 0;
  db.dump([&](auto, auto) { return ++rows < 2; });
  EXPECT_EQ(rows, 2);
  EXPECT_LT(version, db.begin()->read_version());
}

}  // namespace
}  // namespace divan::kv::conformance
