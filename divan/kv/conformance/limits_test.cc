// Limits of size and time, and what a transaction may do after its end.
#include <fmt/core.h>

#include "divan/kv/conformance/conformance.h"

namespace divan::kv::conformance {
namespace {

TEST_P(Conformance, SizesAreLimited) {
  const std::string longest_key(kMaxKeyBytes, 'k'), longest_value(kMaxValueBytes, 'v');
  const auto key = ErrorCode::key_too_large, value = ErrorCode::value_too_large;
  db.run([&](Transaction& tx) {
    EXPECT_EQ(code_of([&] { tx.set(longest_key + "k", ""); }), key);
    EXPECT_EQ(code_of([&] { tx.clear(longest_key + "k"); }), key);
    EXPECT_EQ(code_of([&] { tx.add(longest_key + "k", 1); }), key);
    EXPECT_EQ(code_of([&] { tx.set_versionstamped_key(stampable(longest_key), ""); }), key);
    EXPECT_EQ(code_of([&] { tx.set_versionstamped_value(longest_key + "k", stampable("")); }), key);
    EXPECT_EQ(code_of([&] { tx.set("k", longest_value + "v"); }), value);
    EXPECT_EQ(code_of([&] { tx.atomic(AtomicOp::byte_max, "k", longest_value + "v"); }), value);
    EXPECT_EQ(code_of([&] { tx.set_versionstamped_key(stampable("k"), longest_value + "v"); }), value);
    EXPECT_EQ(code_of([&] { tx.set_versionstamped_value("k", stampable(longest_value)); }), value);
    // The four bytes of the offset count.
    const std::string rest(kMaxKeyBytes - 14, 'r');
    EXPECT_EQ(code_of([&] { tx.set_versionstamped_key(stampable("k", rest), ""); }), key);
    const std::string rest_of_value(kMaxValueBytes - 13, 'r');
    EXPECT_EQ(code_of([&] { tx.set_versionstamped_value("k", stampable("", rest_of_value)); }), value);
    for (const std::string foreign : {"\xff", "\xff/x"}) {
      EXPECT_EQ(code_of([&] { tx.set(foreign, ""); }), ErrorCode::key_outside_legal_range);
      EXPECT_EQ(code_of([&] { tx.clear(foreign); }), ErrorCode::key_outside_legal_range);
      EXPECT_EQ(code_of([&] { tx.add(foreign, 1); }), ErrorCode::key_outside_legal_range);
    }
    EXPECT_EQ(code_of([&] { tx.set_versionstamped_key(stampable("\xff"), ""); }),
              ErrorCode::key_outside_legal_range);
    EXPECT_EQ(code_of([&] { tx.set_versionstamped_value("\xff", stampable("")); }),
              ErrorCode::key_outside_legal_range);
    EXPECT_EQ(code_of([&] { tx.watch("\xff"); }), ErrorCode::key_outside_legal_range);
    EXPECT_TRUE(tx.read_only());
    tx.set(longest_key, longest_value);
    tx.set_versionstamped_key(stampable("s", rest.substr(1)), "");
    tx.set_versionstamped_value("t", stampable("", rest_of_value.substr(1)));
  });
  EXPECT_EQ(get(longest_key), longest_value);
  EXPECT_EQ(get("t").size(), kMaxValueBytes - 4);
}

TEST_P(Conformance, RangesReachBeyondTheLongestKey) {
  const std::string longest_key(kMaxKeyBytes, 'k');
  const KeyRange just = {longest_key, longest_key + '\0'};
  set(longest_key, "1");
  db.run([&](Transaction& tx) {
    EXPECT_EQ(tx.get(longest_key + "k"), std::nullopt);  // there are no such keys
    EXPECT_EQ(tx.get_range(just).rows.size(), 1u);
    tx.add_read_conflict(just), tx.add_write_conflict(just);
    tx.clear_range(just);
  });
  EXPECT_EQ(stored(), "");
}

TEST_P(Conformance, ATransactionIsLimited) {
  const auto tx = db.begin();
  const std::string value(kMaxValueBytes, 'v');
  std::size_t before = 0;
  for (int i = 0; i < 99; ++i) {
    tx->set("k" + std::to_string(i), value);
    EXPECT_GE(tx->approximate_size(), before + value.size());
    before = tx->approximate_size();
  }
  tx->commit();
  tx->reset();
  for (int i = 0; i < 101; ++i) tx->set("l" + std::to_string(i), value);
  EXPECT_EQ(code_of([&] { tx->commit(); }), ErrorCode::transaction_too_large);
  EXPECT_EQ(get("l1"), "(none)");
  // What is read counts, too, where it is remembered for conflicts.
  tx->reset();
  for (std::size_t i = 0; i <= kMaxTransactionBytes / kMaxKeyBytes; ++i)
    tx->get(std::string(kMaxKeyBytes - 8, 'r') + fmt::format("{:08}", i));
  EXPECT_GT(tx->approximate_size(), kMaxTransactionBytes);
  tx->set("k", "v");
  EXPECT_EQ(code_of([&] { tx->commit(); }), ErrorCode::transaction_too_large);
}

TEST_P(Conformance, ATransactionLivesFiveSeconds) {
  DIVAN_NEEDS_INJECTED_TIME();
  ManualClock clock;
  const auto store = GetParam().make(clock, kMaxWatches);
  const auto tx = store->database().begin();
  tx->set("a", "1");
  clock.advance(kTransactionLifetime);
  EXPECT_EQ(tx->get("b"), std::nullopt);
  clock.advance(std::chrono::milliseconds(1));
  const auto too_old = ErrorCode::transaction_too_old;
  const std::vector<std::string> keys = {"b"};
  EXPECT_EQ(code_of([&] { tx->get("b"); }), too_old);
  EXPECT_EQ(code_of([&] { tx->get("b", Isolation::snapshot); }), too_old);
  EXPECT_EQ(code_of([&] { tx->get_many(keys); }), too_old);
  EXPECT_EQ(code_of([&] { tx->get_range({"", "\xff"}); }), too_old);
  EXPECT_EQ(code_of([&] { tx->commit(); }), too_old);
  tx->reset();
  EXPECT_EQ(tx->get("a"), std::nullopt);
  // A transaction that only reads may commit at any age.
  clock.advance(2 * kTransactionLifetime);
  tx->commit();
}

TEST_P(Conformance, ConflictsAreRememberedAsLongAsATransactionLives) {
  DIVAN_NEEDS_INJECTED_TIME();
  ManualClock clock;
  const auto store = GetParam().make(clock, kMaxWatches);
  const auto write = [&](std::string_view key) {
    store->database().run([&](Transaction& tx) { tx.set(key, "x"); });
  };
  const auto tx = store->database().begin();
  tx->get("a"), tx->set("z", "1");
  write("a");
  for (int i = 0; i < 49; ++i) {
    clock.advance(std::chrono::milliseconds(100));
    write("other" + std::to_string(i));
  }
  EXPECT_EQ(code_of([&] { tx->commit(); }), ErrorCode::not_committed);
}

TEST_P(Conformance, AfterItsCommitATransactionRefusesCalls) {
  const auto tx = db.begin();
  tx->set("a", "1");
  tx->commit();
  expect_only_a_reset_is_left(*tx);
  EXPECT_GT(tx->committed_version(), tx->read_version());
  EXPECT_EQ(tx->versionstamp().size(), 10u);
  EXPECT_EQ(stored(), "a=1 ");
}

// Runs a transaction that is refused with `code`, and commits it.
std::optional<ErrorCode> refused(Transaction& tx, ErrorCode code, const std::function<void()>& meanwhile) {
  tx.reset();
  tx.get("a");
  tx.set_versionstamped_value("b", stampable(""));
  if (code == ErrorCode::transaction_too_large) {
    for (std::size_t i = 0; i <= kMaxTransactionBytes / kMaxValueBytes; ++i) {
      tx.set("l" + std::to_string(i), std::string(kMaxValueBytes, 'l'));
    }
  }
  meanwhile();
  return code_of([&] { tx.commit(); });
}

TEST_P(Conformance, AfterACommitThatFailedATransactionRefusesCallsAndHasNoVersion) {
  const auto tx = db.begin();
  for (const auto code : {ErrorCode::not_committed, ErrorCode::transaction_too_large}) {
    // As if there had been a commit before.
    tx->reset();
    tx->set("c", "4");
    tx->commit();
    EXPECT_EQ(refused(*tx, code,
                      [&] {
                        if (code == ErrorCode::not_committed) set("a", "3");
                      }),
              code);
    expect_only_a_reset_is_left(*tx);
    EXPECT_EQ(tx->committed_version(), -1);
    EXPECT_EQ(code_of([&] { tx->versionstamp(); }), ErrorCode::client_invalid_operation);
  }
  tx->reset();
  tx->set("d", "5");
  tx->commit();
  EXPECT_GT(tx->committed_version(), 0);
  EXPECT_EQ(stored(), "a=3 c=4 d=5 ");
}

TEST_P(Conformance, ACommitThatWroteNothingHasNoVersion) {
  const auto tx = db.begin();
  tx->get("a");
  tx->add_read_conflict({"a", "b"});
  tx->commit();
  EXPECT_EQ(tx->committed_version(), -1);
  EXPECT_EQ(code_of([&] { tx->versionstamp(); }), ErrorCode::client_invalid_operation);
}

TEST_P(Conformance, AfterAnErrorThatNoRetryHelpsOnlyAResetIsLeft) {
  const auto tx = db.begin();
  for (const auto code : {ErrorCode::io_error, ErrorCode::key_too_large, ErrorCode::transaction_cancelled}) {
    tx->set("a", "of the try that failed");
    tx->after_commit([] { ADD_FAILURE() << "of the try that failed"; });
    const auto watch = tx->watch("w");
    EXPECT_EQ(code_of([&] { tx->on_error(Error(code)); }), code);
    expect_only_a_reset_is_left(*tx);
    EXPECT_EQ(tx->committed_version(), -1);
    tx->reset();
    EXPECT_TRUE(watch->cancelled());
    EXPECT_TRUE(tx->read_only());
    tx->set("b", "1");
    tx->commit();
    EXPECT_EQ(stored(), "b=1 ");
    tx->reset();
  }
}

TEST_P(Conformance, ConflictRangesAndOperandsCountTowardsTheLimit) {
  const std::string long_key(kMaxKeyBytes, 'k');
  const std::vector<std::function<void(Transaction&)>> steps = {
      [&](Transaction& tx) {
        tx.add_read_conflict({"a", long_key});
      },
      [&](Transaction& tx) {
        tx.add_write_conflict({"a", long_key});
      },
      [&](Transaction& tx) {
        tx.get_range({"a", long_key});
      },
      [&](Transaction& tx) { tx.clear_range("a", long_key); },
      [&](Transaction& tx) { tx.clear(long_key); },
      [&](Transaction& tx) { tx.atomic(AtomicOp::byte_max, "a", long_key); },
      [&](Transaction& tx) { tx.set_versionstamped_value("a", stampable("", long_key)); },
      [&](Transaction& tx) { tx.set_versionstamped_key(stampable("s"), long_key); },
  };
  for (const auto& step : steps) {
    const auto tx = db.begin();
    for (int i = 0; i < 2; ++i) {
      const std::size_t before = tx->approximate_size();
      step(*tx);
      EXPECT_GE(tx->approximate_size(), before + kMaxKeyBytes) << &step - steps.data() << " " << i;
    }
  }
}

TEST_P(Conformance, WhatOnlyWritesIsNeverTooLate) {
  DIVAN_NEEDS_INJECTED_TIME();
  ManualClock clock;
  const auto store = GetParam().make(clock, kMaxWatches);
  const auto tx = store->database().begin();
  tx->set("a", "1");
  clock.advance(4 * kTransactionLifetime);
  tx->add("b", 1);
  tx->commit();
  EXPECT_GT(tx->committed_version(), 0);
  // A read makes it so, however early it was.
  tx->reset();
  tx->get("a");
  clock.advance(4 * kTransactionLifetime);
  tx->set("a", "2");
  EXPECT_EQ(code_of([&] { tx->commit(); }), ErrorCode::transaction_too_old);
}

}  // namespace
}  // namespace divan::kv::conformance
