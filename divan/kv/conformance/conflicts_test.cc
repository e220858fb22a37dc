// A commit is refused exactly if what it has read was changed meanwhile.
#include "divan/kv/conformance/conformance.h"

namespace divan::kv::conformance {
namespace {

Step reads(const KeyRange& range, RangeOptions options = {}) {
  return [range, options](Transaction& tx) { tx.get_range(range, options); };
}

TEST_P(Conformance, AReadKeyConflicts) {
  set("a", "1");
  const Step read = [](Transaction& tx) { tx.get("a"); };
  EXPECT_FALSE(survives(read, writes("a")));
  EXPECT_FALSE(survives(read, [](Transaction& tx) { tx.clear("a"); }));
  EXPECT_FALSE(survives(read, [](Transaction& tx) { tx.clear_range("", "b"); }));
  EXPECT_FALSE(survives(read, [](Transaction& tx) { tx.add("a", 1); }));
  EXPECT_FALSE(survives(read, [](Transaction& tx) { tx.set_versionstamped_value("a", stampable("")); }));
  EXPECT_TRUE(survives(read, writes("b")));
  EXPECT_TRUE(survives(read, writes(std::string("a\0", 2))));
  EXPECT_TRUE(survives(read, writes("")));
  EXPECT_TRUE(survives(read, [](Transaction& tx) { tx.clear_range("b", "c"), tx.clear_range("", "a"); }));
  EXPECT_TRUE(survives(read, [](Transaction& tx) { tx.get("a"); }));
  const std::vector<std::string> keys = {"x", "a"};
  EXPECT_FALSE(survives([&](Transaction& tx) { tx.get_many(keys); }, writes("a")));
  EXPECT_FALSE(survives([&](Transaction& tx) { tx.set("own", ""), tx.get_many(keys); }, writes("x")));
}

TEST_P(Conformance, AKeyThatIsNotThereConflictsToo) {
  EXPECT_FALSE(survives([](Transaction& tx) { tx.get("missing"); }, writes("missing")));
}

TEST_P(Conformance, ARangeConflictsWithWhatAppearsInIt) {
  EXPECT_FALSE(survives_over("bd", reads({"a", "e"}), writes("c")));
  EXPECT_FALSE(survives_over("bd", reads({"a", "e"}), writes("a")));
  EXPECT_FALSE(survives_over("bd", reads({"x", "y"}), writes("xx")));
  EXPECT_FALSE(survives_over("bd", reads({"a", "e"}, {.reverse = true}), writes("dd")));
  EXPECT_FALSE(survives_over("bd", reads({"a", "e"}), [](Transaction& tx) { tx.clear("d"); }));
  EXPECT_TRUE(survives_over("bd", reads({"a", "e"}), writes("e")));
  EXPECT_TRUE(survives_over("bd", reads({"a", "e"}), writes("")));
  EXPECT_FALSE(survives_over("bd", reads({"a", "e"}), [](Transaction& tx) { tx.clear_range("d1", "z"); }));
  EXPECT_TRUE(survives_over("bd", reads({"a", "e"}), [](Transaction& tx) { tx.clear_range("e", "z"); }));
  EXPECT_FALSE(survives_over("bd", reads({"s", "t"}),
                             [](Transaction& tx) { tx.set_versionstamped_key(stampable("s"), "stamped"); }));
}

TEST_P(Conformance, WhatALimitCutOffWasNotRead) {
  const KeyRange all = {"a", "z"};
  EXPECT_FALSE(survives_over("bdfh", reads(all, {.limit = 2}), writes("d")));
  EXPECT_FALSE(survives_over("bdfh", reads(all, {.limit = 2}), writes("c")));
  EXPECT_TRUE(survives_over("bdfh", reads(all, {.limit = 2}), writes(std::string("d\0", 2))));
  EXPECT_FALSE(survives_over("bdfh", reads(all, {.limit = 2, .reverse = true}), writes("f")));
  EXPECT_FALSE(survives_over("bdfh", reads(all, {.limit = 2, .reverse = true}), writes("y")));
  EXPECT_TRUE(survives_over("bdfh", reads(all, {.limit = 2, .reverse = true}), writes("e")));
  EXPECT_TRUE(survives_over("bdfh", reads(all, {.target_bytes = 1}), writes("c")));
  EXPECT_FALSE(survives_over("bdfh", reads(all, {.target_bytes = 1}), writes("a")));
  const Step visits_one = [&](Transaction& tx) { tx.scan(all, {}, [](auto, auto) { return false; }); };
  EXPECT_TRUE(survives_over("bdfh", visits_one, writes("c")));
  EXPECT_FALSE(survives_over("bdfh", visits_one, writes("b")));
}

TEST_P(Conformance, AVisitorThatThrowsHasReadWhatItSaw) {
  const auto throwing = [](RangeOptions options) {
    return [options](Transaction& tx) {
      EXPECT_THROW(tx.scan(KeyRange{"a", "z"}, options,
                           [](auto, auto) -> bool { throw std::runtime_error("enough"); }),
                   std::runtime_error);
    };
  };
  EXPECT_FALSE(survives_over("bdf", throwing({}), writes("b")));
  EXPECT_FALSE(survives_over("bdf", throwing({.reverse = true}), writes("f")));
  EXPECT_TRUE(survives_over("bdf", throwing({.isolation = Isolation::snapshot}), writes("b")));
}

TEST_P(Conformance, SnapshotReadsDoNotConflict) {
  const RangeOptions snapshot = {.isolation = Isolation::snapshot};
  const std::vector<std::string> keys = {"a", "b"};
  EXPECT_TRUE(survives_over(
      "abc", [](Transaction& tx) { tx.get("a", Isolation::snapshot); }, writes("a")));
  EXPECT_TRUE(survives_over(
      "abc", [&](Transaction& tx) { tx.get_many(keys, Isolation::snapshot); }, writes("b")));
  EXPECT_TRUE(survives_over("abc", reads({"a", "z"}, snapshot), writes("bb")));
  EXPECT_TRUE(survives_over(
      "abc", [](Transaction& tx) { tx.add("a", 1), tx.get("a", Isolation::snapshot); }, writes("a")));
  // They see own writes, and an explicit conflict range makes them conflict.
  set_all("abc");
  db.run([&](Transaction& tx) {
    tx.set("a", "own");
    EXPECT_EQ(tx.get("a", Isolation::snapshot), "own");
    EXPECT_EQ(rows(tx, {"a", "b"}, snapshot), "a=own ");
  });
  EXPECT_FALSE(survives_over(
      "abc",
      [](Transaction& tx) {
        tx.get("a", Isolation::snapshot);
        tx.add_read_conflict({"a", "b"});
      },
      writes("a")));
}

TEST_P(Conformance, OwnWritesAreNotReadFromTheStore) {
  set("c", std::string(8, '\0'));
  EXPECT_TRUE(survives([](Transaction& tx) { tx.set("a", "own"), tx.get("a"); }, writes("a")));
  EXPECT_TRUE(survives([](Transaction& tx) { tx.clear("a"), tx.get("a"); }, writes("a")));
  EXPECT_TRUE(survives([](Transaction& tx) { tx.clear_range("a", "b"), tx.get("a"); }, writes("a")));
  // A blind atomic operation reads nothing, until the transaction reads the key.
  EXPECT_TRUE(survives([](Transaction& tx) { tx.add("c", 1); }, [](Transaction& tx) { tx.add("c", 1); }));
  EXPECT_EQ(db.run([](Transaction& tx) { return decode_counter(tx.get("c")); }), 2);
  EXPECT_FALSE(survives([](Transaction& tx) { tx.add("c", 1), tx.get("c"); }, writes("c")));
  EXPECT_TRUE(survives([](Transaction& tx) { tx.set("c", ""), tx.add("c", 1), tx.get("c"); }, writes("c")));
  EXPECT_TRUE(survives([](Transaction& tx) { tx.clear("c"), tx.add("c", 1), tx.get("c"); }, writes("c")));
  EXPECT_TRUE(
      survives([](Transaction& tx) { tx.clear_range("b", "d"), tx.add("c", 1), tx.get("c"); }, writes("c")));
  EXPECT_TRUE(survives([](Transaction& tx) { tx.add("c", 1), tx.set("c", ""), tx.get("c"); }, writes("c")));
  // A read before the write conflicts.
  EXPECT_FALSE(survives([](Transaction& tx) { tx.get("c"), tx.set("c", ""); }, writes("c")));
  EXPECT_FALSE(survives([](Transaction& tx) { tx.get("c"), tx.clear_range("b", "d"); }, writes("c")));
  EXPECT_FALSE(survives(
      [](Transaction& tx) {
        tx.add_read_conflict({"c", "d"}), tx.set("c", "");
      },
      writes("c")));
  // Next to its own writes, a transaction reads the store.
  EXPECT_FALSE(survives_over(
      "bdf",
      [](Transaction& tx) {
        tx.clear_range("c", "e"), tx.set("f", ""), tx.get_range({"a", "z"});
      },
      writes("e")));
}

TEST_P(Conformance, BlindWritesNeverConflict) {
  EXPECT_TRUE(survives([](Transaction& tx) { tx.set("a", "first"); }, writes("a")));
  EXPECT_EQ(get("a"), "first");
  EXPECT_TRUE(survives([](Transaction& tx) { tx.clear_range("", "c"); }, writes("a")));
  EXPECT_EQ(get("a"), "(none)");
}

TEST_P(Conformance, ConflictRangesByHand) {
  const Step read = [](Transaction& tx) { tx.add_read_conflict({"b", "d"}); };
  EXPECT_FALSE(survives(read, writes("b")));
  EXPECT_FALSE(survives(read, writes("cc")));
  EXPECT_TRUE(survives(read, writes("d")));
  EXPECT_TRUE(survives(read, writes("a")));
  EXPECT_TRUE(survives([](Transaction& tx) { tx.add_read_conflict({"b", "b"}); }, writes("b")));
  const Step write = [](Transaction& tx) { tx.add_write_conflict({"b", "d"}); };
  EXPECT_FALSE(survives([](Transaction& tx) { tx.get("c"); }, write));
  EXPECT_TRUE(survives([](Transaction& tx) { tx.get("d"); }, write));
  EXPECT_FALSE(survives(reads({"a", "b1"}), write));
  EXPECT_TRUE(survives([](Transaction& tx) { tx.get("b"); },
                       [](Transaction& tx) {
                         tx.add_write_conflict({"b", "b"});
                       }));
  EXPECT_EQ(get("b"), "other");  // nothing is written by it
}

TEST_P(Conformance, AWriteConflictAloneIsACommit) {
  const auto tx = db.begin();
  tx->add_write_conflict({"a", "b"});
  EXPECT_FALSE(tx->read_only());
  tx->commit();
  EXPECT_GT(tx->committed_version(), 0);
}

TEST_P(Conformance, WriteSkewIsRefused) {
  set_all("xy");
  const auto first = db.begin();
  const auto second = db.begin();
  first->get("x"), first->set("y", "0");
  second->get("y"), second->set("x", "0");
  first->commit();
  EXPECT_EQ(code_of([&] { second->commit(); }), ErrorCode::not_committed);
  EXPECT_EQ(stored(), "x=vx y=0 ");
}

TEST_P(Conformance, ALostUpdateIsRefused) {
  const auto first = db.begin();
  const auto second = db.begin();
  for (const auto& tx : {first.get(), second.get()}) tx->set("n", tx->get("n").value_or("") + "+");
  second->commit();
  EXPECT_EQ(code_of([&] { first->commit(); }), ErrorCode::not_committed);
  EXPECT_EQ(get("n"), "+");
}

TEST_P(Conformance, ARefusedCommitLeavesNothing) {
  const auto tx = db.begin();
  tx->get("a");
  tx->set("b", "1"), tx->add("c", 1), tx->clear_range("x", "y");
  tx->set_versionstamped_key(stampable("s"), "");
  db.run([](Transaction& other) { other.set("a", "1"), other.set("x", "1"); });
  EXPECT_EQ(code_of([&] { tx->commit(); }), ErrorCode::not_committed);
  EXPECT_EQ(tx->committed_version(), -1);
  EXPECT_EQ(stored(), "a=1 x=1 ");
}

TEST_P(Conformance, WhatOnlyReadsNeverConflicts) {
  const auto tx = db.begin();
  tx->get("a"), tx->get_range({"", "\xff"}), tx->add_read_conflict({"a", "b"});
  tx->clear_range("c", "c"), tx->add_write_conflict({"c", "c"});  // nothing
  set("a", "1");
  EXPECT_TRUE(tx->read_only());
  tx->commit();
  EXPECT_EQ(tx->committed_version(), -1);
  EXPECT_EQ(code_of([&] { tx->versionstamp(); }), ErrorCode::client_invalid_operation);
}

TEST_P(Conformance, ConflictsAreFoundHoweverManyCommitsLieBetween) {
  const auto tx = db.begin();
  tx->get("a"), tx->set("z", "1");
  set("a", "2");
  for (int i = 0; i < 300; ++i) set("b" + std::to_string(i), "x");
  EXPECT_EQ(code_of([&] { tx->commit(); }), ErrorCode::not_committed);
}

TEST_P(Conformance, OverlappingRangesConflictByWhenEachPartWasWritten) {
  const auto clear_range = [&](std::string_view begin, std::string_view end) {
    db.run([&](Transaction& tx) { tx.clear_range(begin, end); });
  };
  clear_range("b", "f");
  clear_range("h", "j");
  std::map<std::string, std::unique_ptr<Transaction>> readers;
  for (const std::string key : {"b", "c", "d", "e", "f", "g", "h", "i", "j"}) {
    readers[key] = db.begin();
    readers[key]->get(key);
    readers[key]->set("elsewhere", key);
  }
  clear_range("c", "f");
  clear_range("d", "e");  // e keeps its change of just now
  clear_range("g", "i");
  clear_range("b", "b");
  std::string conflicts;
  for (const auto& [key, reader] : readers) {
    if (code_of([&reader = reader] { reader->commit(); }) == ErrorCode::not_committed) conflicts += key;
  }
  EXPECT_EQ(conflicts, "cdegh");
}

}  // namespace
}  // namespace divan::kv::conformance
