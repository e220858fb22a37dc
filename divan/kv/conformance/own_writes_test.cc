// A transaction sees its own writes, whatever they are and in whatever order they were made.
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

// Two operations on one key, each of {set, clear, clear_range, add, compare_and_clear}, over a stored value
// or none: the second sees the first, before and after the commit.
TEST_P(Conformance, EveryPairOfWritesToAKey) {
  struct Step {
    const char* name;
    std::function<void(Transaction&)> write;
    std::function<std::optional<std::string>(std::optional<std::string>)> expected;
  };
  const std::string one("\x01", 1), two("\x02", 1);
  const std::vector<Step> steps = {
      {"set", [&](Transaction& tx) { tx.set("k", two); }, [&](auto) { return two; }},
      {"clear", [](Transaction& tx) { tx.clear("k"); }, [](auto) { return std::nullopt; }},
      {"clear_range", [](Transaction& tx) { tx.clear_range("j", "l"); }, [](auto) { return std::nullopt; }},
      {"add", [&](Transaction& tx) { tx.atomic(AtomicOp::add, "k", one); },
       [](auto value) {
         return std::string(1, static_cast<char>(value.value_or(std::string(1, 0))[0] + 1));
       }},
      {"compare_and_clear", [&](Transaction& tx) { tx.atomic(AtomicOp::compare_and_clear, "k", two); },
       [&](auto value) { return value == two ? std::nullopt : value; }},
  };
  for (const std::optional<std::string>& before : {std::optional<std::string>(), std::optional(one)}) {
    for (const auto& first : steps) {
      for (const auto& second : steps) {
        SCOPED_TRACE(
            fmt::format("{} then {} over {}", first.name, second.name, before ? "a value" : "nothing"));
        db.run([&](Transaction& tx) {
          tx.clear_range("", "\xff");
          tx.set("i", "i"), tx.set("m", "m");
          if (before) tx.set("k", *before);
        });
        const auto after_first = first.expected(before);
        const auto after_both = second.expected(after_first);
        const std::string in_range = after_both ? "i=i k=" + *after_both + " m=m " : "i=i m=m ";
        db.run([&](Transaction& tx) {
          first.write(tx);
          EXPECT_EQ(tx.get("k"), after_first);
          second.write(tx);
          EXPECT_EQ(tx.get("k"), after_both);
          EXPECT_EQ(tx.get("k", Isolation::snapshot), after_both);
          EXPECT_EQ(rows(tx, {"a", "z"}), in_range);
          EXPECT_EQ(tx.get_key(KeySelector::first_greater_than("i")), after_both ? "k" : "m");
          EXPECT_EQ(tx.get_key(KeySelector::last_less_than("m")), after_both ? "k" : "i");
        });
        EXPECT_EQ(stored(), in_range);
        // Without a look in between.
        db.run([&](Transaction& tx) {
          tx.clear("k");
          if (before) tx.set("k", *before);
        });
        db.run([&](Transaction& tx) { first.write(tx), second.write(tx); });
        EXPECT_EQ(stored(), in_range);
      }
    }
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
