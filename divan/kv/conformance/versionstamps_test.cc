// Versionstamps: their values, and that they cannot be read before the commit.
#include <fmt/core.h>

#include "divan/kv/conformance/conformance.h"
#include "divan/kv/tuple.h"

namespace divan::kv::conformance {
namespace {

TEST_P(Conformance, StampsGoIntoKeysAndValuesAndGrow) {
  std::string before;
  Version version = 0;
  for (int i = 0; i < 20; ++i) {
    const auto tx = db.begin();
    tx->set_versionstamped_key(stampable("s", "tail"), std::to_string(i));
    tx->set_versionstamped_value("last", stampable("<", ">"));
    tx->commit();
    const std::string stamp = tx->versionstamp();
    ASSERT_EQ(stamp.size(), 10u);
    EXPECT_LT(before, stamp);
    EXPECT_LT(version, tx->committed_version());
    EXPECT_EQ(get("s" + stamp + "tail"), std::to_string(i));
    EXPECT_EQ(get("last"), "<" + stamp + ">");
    before = stamp;
    version = tx->committed_version();
    EXPECT_LE(version, db.begin()->read_version());
  }
  EXPECT_EQ(db.run([](Transaction& tx) { return tx.get_range({"s", "t"}).rows.size(); }), 20u);
}

// At the beginning, in the middle, at the end, alone; and where the offset needs its other bytes, those
// too that look negative.
TEST_P(Conformance, StampsGoToAnyOffset) {
  const std::vector<std::pair<std::size_t, std::size_t>>
      around_values = {{0, 0},      {0, 1},      {1, 0},      {3, 2},   {127, 1},    {128, 1},
                       {255, 0},    {256, 0},    {257, 3},    {511, 1}, {32'768, 1}, {65'535, 7},
                       {65'536, 1}, {65'793, 1}, {99'986, 0},  // no more fits before it
                       {0, 99'986}};
  const auto tx = db.begin();
  const auto is_for_keys = [](auto around) { return around.first + around.second + 14 <= kMaxKeyBytes; };
  for (const auto& around : around_values) {
    const std::string before(around.first, 'b'), after(around.second, 'a');
    tx->set_versionstamped_value(fmt::format("value {} {}", around.first, around.second),
                                 stampable(before, after));
    if (!is_for_keys(around)) continue;
    std::string key = stampable(before, after);
    key.at(around.first) = '\0';  // or it might begin like keys of the engine
    tx->set_versionstamped_key(key, "key");
  }
  tx->set_versionstamped_key(stampable(std::string(kMaxKeyBytes - 14, 'b')), "key");
  tx->commit();
  const std::string stamp = tx->versionstamp();
  for (const auto& around : around_values) {
    const std::string stamped = std::string(around.first, 'b') + stamp + std::string(around.second, 'a');
    EXPECT_EQ(get(fmt::format("value {} {}", around.first, around.second)), stamped) << around.first;
    if (is_for_keys(around)) { EXPECT_EQ(get(stamped), "key") << around.first; }
  }
  EXPECT_EQ(get(std::string(kMaxKeyBytes - 14, 'b') + stamp), "key");
}

TEST_P(Conformance, TheUserVersionOrdersTheWritesOfATransaction) {
  const auto tx = db.begin();
  for (const std::uint16_t user_version : std::initializer_list<std::uint16_t>{300, 2, 1}) {
    const tuple::Tuple key = {tuple::String{"log"}, Versionstamp::incomplete(user_version)};
    tx->set_versionstamped_key(tuple::pack_with_versionstamp(key), std::to_string(user_version));
  }
  tx->commit();
  std::string values;
  db.run([&](Transaction& reader) {
    for (const auto& row : reader.get_range(tuple::range({tuple::String{"log"}})).rows) {
      values += row.value + " ";
      const auto key = tuple::unpack(row.key);
      const auto number = static_cast<std::uint16_t>(std::stoi(row.value));
      EXPECT_EQ(std::get<Versionstamp>(key.at(1)), Versionstamp::complete(tx->versionstamp(), number));
    }
  });
  EXPECT_EQ(values, "1 2 300 ");
}

TEST_P(Conformance, UserVersionsAreClaimedOnceInEachTry) {
  const auto tx = db.begin();
  for (int i = 0; i <= UINT16_MAX; ++i) ASSERT_EQ(tx->claim_user_version(), i);
  EXPECT_EQ(code_of([&] { tx->claim_user_version(); }), ErrorCode::transaction_too_large);
  tx->reset();
  EXPECT_EQ(tx->claim_user_version(), 0);
  int tries = 0;
  db.run([&](Transaction& repeated) {
    EXPECT_EQ(repeated.claim_user_version(), 0);
    EXPECT_EQ(repeated.claim_user_version(), 1);
    if (++tries < 3) throw Error(ErrorCode::not_committed);
  });
  EXPECT_EQ(tries, 3);
}

TEST_P(Conformance, StampsOfConcurrentCommitsDiffer) {
  const auto first = db.begin();
  const auto second = db.begin();
  for (const auto& tx : {first.get(), second.get()}) tx->set_versionstamped_key(stampable("s"), "");
  second->commit();
  first->commit();
  EXPECT_LT(second->versionstamp(), first->versionstamp());
  EXPECT_EQ(db.run([](Transaction& tx) { return tx.get_range({"s", "t"}).rows.size(); }), 2u);
}

TEST_P(Conformance, AStampedValueCannotBeReadBeforeTheCommit) {
  set_all("ackz");
  db.run([](Transaction& tx) {
    tx.set_versionstamped_value("k", stampable(""));
    const auto unreadable = ErrorCode::accessed_unreadable;
    EXPECT_EQ(code_of([&] { tx.get("k"); }), unreadable);
    EXPECT_EQ(code_of([&] { tx.get("k", Isolation::snapshot); }), unreadable);
    const std::vector<std::string> keys = {"a", "k"};
    EXPECT_EQ(code_of([&] { tx.get_many(keys); }), unreadable);
    EXPECT_EQ(code_of([&] { tx.get_range({"a", "z"}); }), unreadable);
    EXPECT_EQ(code_of([&] { tx.get_range({"a", "z"}, {.reverse = true}); }), unreadable);
    EXPECT_EQ(code_of([&] { tx.watch("k"); }), unreadable);
    EXPECT_EQ(rows(tx, {"a", "z"}, {.limit = 2}), "a=va c=vc ");
    EXPECT_EQ(rows(tx, {"c", "\xff"}, {.limit = 1, .reverse = true}), "z=vz ");
    EXPECT_EQ(rows(tx, {"a", "k"}), "a=va c=vc ");
  });
}

TEST_P(Conformance, WhereAStampedKeyMayComeToStandNothingCanBeRead) {
  db.run([](Transaction& tx) { tx.set("sa", "before"), tx.set("sz", "after"), tx.set("t", "far"); });
  const auto earlier = db.begin();
  earlier->set_versionstamped_key(stampable("s", "~"), "earlier");
  earlier->commit();
  db.run([&](Transaction& tx) {
    tx.set_versionstamped_key(stampable("s"), "own");
    const auto unreadable = ErrorCode::accessed_unreadable;
    EXPECT_EQ(code_of([&] { tx.get_range({"s", "t"}); }), unreadable);
    EXPECT_EQ(code_of([&] { tx.get_range({"s", "t"}, {.isolation = Isolation::snapshot}); }), unreadable);
    EXPECT_EQ(code_of([&] { tx.get("s" + std::string(10, '\xf0')); }), unreadable);
    EXPECT_EQ(code_of([&] { tx.get("s" + std::string(10, '\xff')); }), unreadable);
    EXPECT_EQ(tx.get("s" + std::string(10, '\xff') + '\0'), std::nullopt);
    EXPECT_EQ(code_of([&] { tx.get_range({"", "t"}, {.limit = 1, .reverse = true}); }), unreadable);
    // What came before, and what lies beside it.
    EXPECT_EQ(tx.get("s" + earlier->versionstamp() + "~"), "earlier");
    EXPECT_EQ(tx.get_range({"s", "t"}, {.limit = 1}).rows.at(0).value, "earlier");
    EXPECT_EQ(rows(tx, {"t", "u"}), "t=far ");
    EXPECT_EQ(tx.get_range({"s", "\xff"}, {.limit = 1, .reverse = true}).rows.at(0).key, "t");
  });
  EXPECT_EQ(db.run([](Transaction& tx) { return tx.get_range({"s", "t"}).rows.size(); }), 4u);
}

TEST_P(Conformance, LaterWritesGoOverStampedOnes) {
  db.run([](Transaction& tx) {
    tx.set_versionstamped_key(stampable("s", "1"), "cleared");
    tx.set_versionstamped_value("v", stampable(""));
    tx.clear_range("s", "w");
    tx.set_versionstamped_key(stampable("s", "2"), "kept");
    tx.set_versionstamped_key(stampable("u"), "kept");
    tx.clear_range("a", "b");
    tx.clear_range("u\x01", "uz");  // reaches no stamp of these years
    tx.set_versionstamped_value("w", stampable(""));
    tx.set("w", "plain");
  });
  std::string values;
  db.run([&](Transaction& tx) {
    for (const auto& row : tx.get_range({"", "\xff"}).rows) values += row.value + " ";
  });
  EXPECT_EQ(values, "kept kept plain ");
}

TEST_P(Conformance, AClearedRangeThatCutsThroughTheStampsClearsByTheFinalKey) {
  const std::string low = "s" + std::string(8, '\0'), middle = "s" + std::string(1, '\x7f');
  db.run([&](Transaction& tx) {
    tx.set_versionstamped_key(stampable("s"), "cleared");
    tx.clear_range(low, middle);
  });
  EXPECT_EQ(stored(), "");
  db.run([&](Transaction& tx) {
    tx.set_versionstamped_key(stampable("s"), "kept");
    tx.clear_range(middle, "t");
  });
  EXPECT_EQ(db.run([](Transaction& tx) { return tx.get_range({"s", "t"}).rows.at(0).value; }), "kept");
}

TEST_P(Conformance, AtomicOperationsOnAStampedValueComeAfterTheStamp) {
  const auto tx = db.begin();
  tx->set_versionstamped_value("k", stampable("", std::string(1, '\x01')));
  tx->atomic(AtomicOp::byte_max, "k", std::string("\0", 1));
  tx->atomic(AtomicOp::add, "k", std::string(10, '\0') + '\x02');
  EXPECT_EQ(code_of([&] { tx->get("k"); }), ErrorCode::accessed_unreadable);
  tx->commit();
  EXPECT_EQ(get("k"), tx->versionstamp() + '\x03');
}

TEST_P(Conformance, AStampedValueGoesOverWhatWasWrittenBefore) {
  const auto tx = db.begin();
  tx->atomic(AtomicOp::byte_max, "k", "\xf0");
  tx->set_versionstamped_value("k", stampable("<"));
  tx->set("l", "before");
  tx->set_versionstamped_value("l", stampable("<"));
  tx->clear("m");
  tx->set_versionstamped_value("m", stampable("<"));
  tx->commit();
  const std::string value = "<" + tx->versionstamp();
  EXPECT_EQ(stored(), "k=" + value + " l=" + value + " m=" + value + " ");
}

TEST_P(Conformance, TheLastOfTwoWritesToOneStampedKeyCounts) {
  db.run([](Transaction& tx) {
    tx.set_versionstamped_key(stampable("s"), "first");
    tx.set_versionstamped_key(stampable("s"), "second");
  });
  EXPECT_EQ(db.run([](Transaction& tx) { return tx.get_range({"s", "t"}).rows.at(0).value; }), "second");
}

TEST_P(Conformance, MalformedStampsAreRefused) {
  db.run([](Transaction& tx) {
    const auto invalid = ErrorCode::client_invalid_operation;
    EXPECT_EQ(code_of([&] { tx.set_versionstamped_key("abc", ""); }), invalid);
    EXPECT_EQ(code_of([&] { tx.set_versionstamped_key(std::string("123456789\0\0\0\0", 13), ""); }), invalid);
    EXPECT_EQ(code_of([&] { tx.set_versionstamped_key(std::string("1234567890\1\0\0\0", 14), ""); }),
              invalid);
    EXPECT_EQ(code_of([&] { tx.set_versionstamped_value("k", "1234567890\xff\xff\xff\xff"); }), invalid);
    EXPECT_EQ(code_of([&] { tx.set_versionstamped_value("k", ""); }), invalid);
    EXPECT_TRUE(tx.read_only());
  });
}

TEST_P(Conformance, VersionsCanBeAdvanced) {
  set("a", "1");
  const Version far = db.begin()->read_version() + 1'000'000;
  db.advance_version(far);
  EXPECT_GE(db.begin()->read_version(), far);
  const auto tx = db.begin();
  tx->set("b", "2");
  tx->commit();
  EXPECT_GT(tx->committed_version(), far);
  db.advance_version(1);  // never back
  EXPECT_GE(db.begin()->read_version(), tx->committed_version());
  EXPECT_EQ(stored(), "a=1 b=2 ");
}

TEST_P(Conformance, OnlyAClearMakesAStampedValueReadableAgain) {
  db.run([](Transaction& tx) {
    const auto unreadable = ErrorCode::accessed_unreadable;
    const auto check = [&](std::string_view key) {
      EXPECT_EQ(code_of([&] { tx.get(key); }), unreadable);
      EXPECT_EQ(code_of([&] { tx.get_range({"", "\xff"}); }), unreadable);
      EXPECT_EQ(code_of([&] { tx.get_range({"", "\xff"}, {.reverse = true}); }), unreadable);
    };
    tx.set_versionstamped_value("k", stampable(""));
    tx.set("k", "plain");
    check("k");
    tx.atomic(AtomicOp::byte_max, "k", "plainer");
    check("k");
    tx.atomic(AtomicOp::compare_and_clear, "k", "plainer");
    check("k");
    tx.clear("k");
    EXPECT_EQ(tx.get("k"), std::nullopt);
    EXPECT_EQ(rows(tx, {"", "\xff"}), "");
    tx.set("k", "again");
    EXPECT_EQ(rows(tx, {"", "\xff"}), "k=again ");
    tx.set_versionstamped_value("l", stampable(""));
    check("l");
    tx.clear_range("l", "m");
    tx.add("l", 1);
    EXPECT_EQ(decode_counter(tx.get("l")), 1);
    tx.set_versionstamped_value("m", stampable(""));
    tx.set("m", "plain");
    tx.clear("l");
  });
  EXPECT_EQ(stored(), "k=again m=plain ");
}

TEST_P(Conformance, WhereAStampedKeyMayComeToStandOnlyAClearMakesKeysReadable) {
  db.run([](Transaction& tx) { tx.set("sb", "before"), tx.set("sc", "before"); });
  const auto unreadable = ErrorCode::accessed_unreadable;
  db.run([&](Transaction& tx) {
    tx.set_versionstamped_key(stampable("s"), "stamped");
    tx.set("sc", "own");
    EXPECT_EQ(code_of([&] { tx.get("sc"); }), unreadable);
    tx.clear("sc");
    EXPECT_EQ(tx.get("sc"), std::nullopt);
    tx.set("sc", "own");
    EXPECT_EQ(rows(tx, {"sc", std::string("sc\0", 3)}), "sc=own ");
    EXPECT_EQ(code_of([&] { tx.get(std::string("sc\0", 3)); }), unreadable);
    EXPECT_EQ(code_of([&] { tx.get("sb"); }), unreadable);
    tx.clear_range("sf", "sh");
    tx.set("sg", "own");
    EXPECT_EQ(rows(tx, {"sf", "sh"}), "sg=own ");
    EXPECT_EQ(rows(tx, {"sf", "sh"}, {.reverse = true}), "sg=own ");
    EXPECT_EQ(code_of([&] { tx.get("sh"); }), unreadable);
    EXPECT_EQ(code_of([&] { tx.get("sez"); }), unreadable);
    EXPECT_EQ(code_of([&] { tx.get_range({"sf", "si"}); }), unreadable);
    EXPECT_EQ(code_of([&] { tx.get_range({"se", "sh"}, {.reverse = true}); }), unreadable);
    EXPECT_EQ(rows(tx, {"", "sh"}, {.limit = 1, .reverse = true}), "sg=own ");
    EXPECT_EQ(code_of([&] { tx.get_range({"", "sf"}, {.limit = 1, .reverse = true}); }), unreadable);
  });
  // The stamp of these years begins with a zero.
  std::string values;
  db.run([&](Transaction& tx) {
    for (const auto& row : tx.get_range({"s", "t"}).rows) values += row.value + " ";
  });
  EXPECT_EQ(values, "stamped before own own ");
  db.run([&](Transaction& tx) {
    tx.clear_range("s", "t");
    tx.set_versionstamped_key(stampable("s"), "stamped");
    tx.set_versionstamped_key(stampable("s", "~"), "stamped");
    tx.clear_range("s", "t");
    EXPECT_EQ(rows(tx, {"", "\xff"}), "");
    tx.set("sg", "own");
    EXPECT_EQ(rows(tx, {"", "\xff"}), "sg=own ");
  });
  EXPECT_EQ(stored(), "sg=own ");
}

TEST_P(Conformance, TheStampIsKnownAfterTheCommitOnly) {
  const auto tx = db.begin();
  tx->set_versionstamped_key(stampable("s"), "");
  EXPECT_EQ(code_of([&] { tx->versionstamp(); }), ErrorCode::client_invalid_operation);
  EXPECT_EQ(tx->committed_version(), -1);
  tx->commit();
  EXPECT_EQ(get("s" + tx->versionstamp()), "");
  tx->reset();
  EXPECT_EQ(code_of([&] { tx->versionstamp(); }), ErrorCode::client_invalid_operation);
  EXPECT_EQ(tx->committed_version(), -1);
}

}  // namespace
}  // namespace divan::kv::conformance
