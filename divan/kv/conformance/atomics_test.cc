// Atomic operations, as FoundationDB defines them.
#include "divan/kv/conformance/conformance.h"

namespace divan::kv::conformance {
namespace {

struct Example {
  AtomicOp op;
  std::optional<std::string> before;
  std::string operand;
  std::optional<std::string> after;
};

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out += static_cast<char>(value);
  return out;
}

std::vector<Example> examples() {
  using enum AtomicOp;
  const auto none = std::nullopt;
  return {
      // Little-endian numbers as long as the operand: a missing value, one as long, a shorter one, a longer
      // one, an empty one, an empty operand.
      {add, none, bytes({1, 2}), bytes({1, 2})},
      {add, bytes({255, 1}), bytes({1, 0}), bytes({0, 2})},
      {add, bytes({255, 255}), bytes({1, 0}), bytes({0, 0})},
      {add, bytes({200, 200}), bytes({200, 200}), bytes({144, 145})},
      {add, bytes({255, 255, 255, 255, 255, 255, 255, 255, 0}), bytes({1, 0, 0, 0, 0, 0, 0, 0, 5}),
       bytes({0, 0, 0, 0, 0, 0, 0, 0, 6})},
      {add, bytes({7}), bytes({1, 0, 0}), bytes({8, 0, 0})},
      {add, bytes({255}), bytes({1, 0, 0}), bytes({0, 1, 0})},
      {add, bytes({1, 2, 3}), bytes({1}), bytes({2})},
      {add, bytes({255, 2, 3}), bytes({1}), bytes({0})},
      {add, "", bytes({5}), bytes({5})},
      {add, bytes({1, 2}), "", ""},
      {add, none, "", ""},
      {min, none, bytes({9, 0}), bytes({9, 0})},
      {min, bytes({1, 1}), bytes({2, 0}), bytes({2, 0})},
      {min, bytes({1, 0}), bytes({0, 1}), bytes({1, 0})},
      {min, bytes({3, 3}), bytes({3, 3}), bytes({3, 3})},
      {min, bytes({0, 128}), bytes({255, 127}), bytes({255, 127})},  // without a sign
      {min, bytes({5}), bytes({6, 0, 0}), bytes({5, 0, 0})},
      {min, bytes({7}), bytes({6, 0, 0}), bytes({6, 0, 0})},
      {min, bytes({5, 0, 9}), bytes({6, 0}), bytes({5, 0})},
      {min, bytes({7, 0, 9}), bytes({6, 0}), bytes({6, 0})},
      {min, "", bytes({6}), bytes({0})},
      {min, bytes({6}), "", ""},
      {min, none, "", ""},
      {max, none, bytes({9, 0}), bytes({9, 0})},
      {max, bytes({1, 1}), bytes({2, 0}), bytes({1, 1})},
      {max, bytes({1, 0}), bytes({0, 1}), bytes({0, 1})},
      {max, bytes({3, 3}), bytes({3, 3}), bytes({3, 3})},
      {max, bytes({0, 128}), bytes({255, 127}), bytes({0, 128})},
      {max, bytes({200}), bytes({100, 0}), bytes({200, 0})},
      {max, bytes({100}), bytes({200, 0}), bytes({200, 0})},
      {max, bytes({5, 0, 9}), bytes({6, 0}), bytes({6, 0})},
      {max, bytes({7, 0, 9}), bytes({6, 0}), bytes({7, 0})},
      {max, "", bytes({6}), bytes({6})},
      {max, bytes({6}), "", ""},
      {max, none, "", ""},
      // Byte strings.
      {byte_min, none, "m", "m"},
      {byte_min, none, "", ""},
      {byte_min, "", "m", ""},
      {byte_min, "m", "", ""},
      {byte_min, "m", "mm", "m"},
      {byte_min, "mm", "m", "m"},
      {byte_min, "l", "mm", "l"},
      {byte_min, "n", "mm", "mm"},
      {byte_min, "a", bytes({255}), "a"},
      {byte_min, bytes({255}), "a", "a"},
      {byte_min, bytes({0, 2}), bytes({1, 0}), bytes({0, 2})},
      {byte_max, none, "m", "m"},
      {byte_max, none, "", ""},
      {byte_max, "", "m", "m"},
      {byte_max, "m", "", "m"},
      {byte_max, "m", "mm", "mm"},
      {byte_max, "mm", "m", "mm"},
      {byte_max, "l", "mm", "mm"},
      {byte_max, "n", "mm", "n"},
      {byte_max, bytes({255}), "z", bytes({255})},
      {byte_max, "z", bytes({255}), bytes({255})},
      {byte_max, bytes({0, 2}), bytes({1, 0}), bytes({1, 0})},
      {compare_and_clear, none, "", none},
      {compare_and_clear, none, "x", none},
      {compare_and_clear, "", "", none},
      {compare_and_clear, "", "x", ""},
      {compare_and_clear, "x", "", "x"},
      {compare_and_clear, "x", "x", none},
      {compare_and_clear, "x", "xx", "x"},
      {compare_and_clear, "xx", "x", "xx"},
      {compare_and_clear, bytes({1}), bytes({1, 0}), bytes({1})},  // no numbers
  };
}

TEST_P(Conformance, AtomicOperations) {
  int number = 0;
  for (const auto& [op, before, operand, after] : examples()) {
    SCOPED_TRACE(number++);
    const auto prepare = [&, before = before](Transaction& tx) {
      tx.clear("k");
      if (before) tx.set("k", *before);
    };
    const auto value = [](Transaction& tx) { return tx.get("k"); };
    const auto operate = [&, op = op, operand = operand](Transaction& tx) { tx.atomic(op, "k", operand); };
    // On what is stored, seen and unseen, and on what the same transaction wrote.
    db.run(prepare);
    db.run(operate);
    EXPECT_EQ(db.run(value), after);
    db.run(prepare);
    db.run([&, &after = after](Transaction& tx) {
      operate(tx);
      EXPECT_EQ(value(tx), after);
      EXPECT_EQ(tx.get_range({"k", "l"}).rows.size(), after ? 1u : 0u);
    });
    db.run([&, &after = after](Transaction& tx) {
      prepare(tx), operate(tx);
      EXPECT_EQ(value(tx), after);
    });
    EXPECT_EQ(db.run(value), after);
  }
}

TEST_P(Conformance, AtomicOperationsBuildOnEachOther) {
  db.run([](Transaction& tx) {
    tx.add("n", 5);
    tx.add("n", -7);
    EXPECT_EQ(decode_counter(tx.get("n")), -2);
    tx.atomic(AtomicOp::add, "n", std::string(4, '\x01'));  // shorter: the counter is now, too
    tx.add("n", 1);
    tx.atomic(AtomicOp::max, "m", "b");
    tx.atomic(AtomicOp::min, "m", "a");
    tx.atomic(AtomicOp::compare_and_clear, "m", "a");
    tx.atomic(AtomicOp::byte_max, "m", "");
    EXPECT_EQ(tx.get("m"), "");
  });
  const std::int64_t low = (-2 + 0x01010101LL) & 0xffffffff;
  EXPECT_EQ(db.run([](Transaction& tx) { return decode_counter(tx.get("n")); }), low + 1);
  EXPECT_EQ(get("m"), "");
}

TEST_P(Conformance, AdditionsOfDifferentLengthsFollowEachOther) {
  set("n", std::string(8, '\x01'));
  db.run([](Transaction& tx) {
    tx.atomic(AtomicOp::add, "n", bytes({1, 0}));
    tx.add("n", 1);
  });
  EXPECT_EQ(get("n"), bytes({3, 1, 0, 0, 0, 0, 0, 0}));
}

TEST_P(Conformance, ConcurrentAdditionsAllCount) {
  const auto first = db.begin();
  const auto second = db.begin();
  for (const auto& tx : {first.get(), second.get()}) tx->add("n", 1);
  second->commit();
  first->commit();
  EXPECT_EQ(db.run([](Transaction& tx) { return decode_counter(tx.get("n")); }), 2);
}

}  // namespace
}  // namespace divan::kv::conformance
