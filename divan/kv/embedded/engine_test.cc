#include "divan/kv/embedded/engine.h"

#include <rapidcheck/gtest.h>

#include <fstream>
#include <future>
#include <latch>

#include "divan/kv/embedded/temporary_store.h"

namespace divan::kv::embedded {
namespace {

std::string get(Database& db, std::string_view key) {
  return db.run([&](Transaction& tx) { return tx.get(key).value_or("(none)"); });
}

void set(Database& db, std::string_view key, std::string_view value) {
  db.run([&](Transaction& tx) { tx.set(key, value); });
}

std::string joined(Transaction& tx, const KeyRange& range, const RangeOptions& options = {}) {
  std::string out;
  for (const auto& row : tx.get_range(range, options).rows) out += row.key + "=" + row.value + " ";
  return out;
}

ErrorCode code_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& error) { return error.code(); }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(Engine, WritesAreThereAfterTheCommitAndAfterAReopen) {
  TemporaryStore store;
  set(*store, "a", "1");
  EXPECT_EQ(get(*store, "a"), "1");
  store.reopen();
  EXPECT_EQ(get(*store, "a"), "1");
}

TEST(Engine, AnUncommittedTransactionLeavesNothing) {
  TemporaryStore store;
  store->begin()->set("a", "1");
  EXPECT_EQ(get(*store, "a"), "(none)");
}

TEST(Engine, ATransactionReadsOneVersion) {
  TemporaryStore store;
  set(*store, "a", "1");
  auto tx = store->begin();
  EXPECT_EQ(tx->get("a"), "1");
  set(*store, "a", "2");
  set(*store, "b", "2");
  EXPECT_EQ(tx->get("a"), "1");
  EXPECT_FALSE(tx->get("b"));
  EXPECT_EQ(joined(*tx, {"a", "z"}), "a=1 ");
}

TEST(Engine, OwnWritesAreSeen) {
  TemporaryStore store;
  store->run([](Transaction& tx) {
    for (const std::string key : {"a", "b", "c", "d", "e", "f"}) tx.set(key, "old");
    tx.add("n", 5);
  });
  store->run([](Transaction& tx) {
    tx.clear_range("b", "e");
    tx.set("c", "new");
    tx.clear("f");
    tx.set("g", "new");
    tx.add("n", 2);
    tx.add("n", -3);
    tx.add("m", 1);
    EXPECT_EQ(joined(tx, {"a", "h"}), "a=old c=new e=old g=new ");
    EXPECT_EQ(joined(tx, {"a", "h"}, {.reverse = true}), "g=new e=old c=new a=old ");
    EXPECT_EQ(joined(tx, {"a", "h"}, {.limit = 2}), "a=old c=new ");
    EXPECT_EQ(joined(tx, {"a", "h"}, {.limit = 2, .reverse = true}), "g=new e=old ");
    EXPECT_EQ(decode_counter(tx.get("n")), 4);
    EXPECT_EQ(decode_counter(tx.get("m")), 1);
    EXPECT_FALSE(tx.get("b"));
    EXPECT_EQ(tx.get("c"), "new");
    const std::vector<std::string> keys = {"g", "b", "a"};
    EXPECT_EQ(tx.get_many(keys), (std::vector<std::optional<std::string>>{"new", std::nullopt, "old"}));
  });
  EXPECT_EQ(store->run([](Transaction& tx) { return joined(tx, {"a", "h"}); }), "a=old c=new e=old g=new ");
}

TEST(Engine, KeySelectors) {
  TemporaryStore store;
  store->run([](Transaction& tx) {
    for (const std::string key : {"b", "d", "f", "h"}) tx.set(key, "");
  });
  store->run([](Transaction& tx) {
    tx.clear("f");
    tx.set("e", "");  // b d e h
    EXPECT_EQ(tx.get_key(KeySelector::first_greater_or_equal("d")), "d");
    EXPECT_EQ(tx.get_key(KeySelector::first_greater_than("d")), "e");
    EXPECT_EQ(tx.get_key(KeySelector::last_less_than("d")), "b");
    EXPECT_EQ(tx.get_key(KeySelector::last_less_or_equal("d")), "d");
    EXPECT_EQ(tx.get_key({"c", false, 3}), "h");
    EXPECT_EQ(tx.get_key({"h", false, -1}), "d");
    EXPECT_EQ(tx.get_key({"h", false, 5}), "\xff");
    EXPECT_EQ(tx.get_key({"b", false, 0}), "");
    EXPECT_EQ(tx.get_range({"b", false, 2}, {"z", false, 0}).rows.size(), 2u);  // d e
  });
}

TEST(Engine, RangesHaveLimitsTargetsAndTellWhetherThereIsMore) {
  TemporaryStore store;
  store->run([](Transaction& tx) {
    for (int i = 0; i < 10; ++i) tx.set("k" + std::to_string(i), std::string(98, 'x'));
  });
  store->run([](Transaction& tx) {
    EXPECT_TRUE(tx.get_range({"k", "l"}, {.limit = 10}).more);
    EXPECT_FALSE(tx.get_range({"k", "l"}, {.limit = 11}).more);
    const auto page = tx.get_range({"k", "l"}, {.target_bytes = 250});
    EXPECT_EQ(page.rows.size(), 3u);
    EXPECT_TRUE(page.more);
    EXPECT_TRUE(tx.get_range({"x", "x"}).rows.empty());
    EXPECT_EQ(code_of([&] { tx.get_range({"y", "x"}); }), ErrorCode::inverted_range);
  });
}

TEST(Engine, AConflictIsFoundWhateverTheReadWas) {
  TemporaryStore store;
  set(*store, "a", "1");
  const auto outcome = [&](const std::function<void(Transaction&)>& read, std::string_view written) {
    auto tx = store->begin();
    read(*tx);
    tx->set("result", "x");
    set(*store, written, "2");
    try {
      tx->commit();
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_committed);
      return false;
    }
  };
  EXPECT_FALSE(outcome([](auto& tx) { tx.get("a"); }, "a"));
  EXPECT_FALSE(outcome([](auto& tx) { tx.get("missing"); }, "missing"));
  EXPECT_TRUE(outcome([](auto& tx) { tx.get("a"); }, "b"));
  EXPECT_TRUE(outcome([](auto& tx) { tx.get("a", Isolation::snapshot); }, "a"));
  EXPECT_FALSE(outcome([](auto& tx) { joined(tx, {"p", "q"}); }, "phantom"));
  EXPECT_TRUE(outcome(
      [](auto& tx) {
        joined(tx, {"p", "q"}, {.isolation = Isolation::snapshot});
      },
      "phantom2"));
  // A range that a limit cut short was read up to its last row only.
  EXPECT_TRUE(outcome([](auto& tx) { joined(tx, {"a", "z"}, {.limit = 1}); }, "m"));
  EXPECT_FALSE(outcome([](auto& tx) { joined(tx, {"a", "z"}, {.limit = 1, .reverse = true}); }, "y"));
  EXPECT_FALSE(outcome([](auto& tx) { tx.get_key(KeySelector::first_greater_than("r")); }, "r1"));
  EXPECT_FALSE(outcome([](auto& tx) { tx.add_read_conflict({"e", "g"}); }, "f"));
  // A blind atomic operation reads nothing; one that is read does.
  EXPECT_TRUE(outcome([](auto& tx) { tx.add("counter", 1); }, "counter"));
  EXPECT_FALSE(outcome([](auto& tx) { tx.add("counter", 1), tx.get("counter"); }, "counter"));
  // A key that the transaction wrote itself was not read from the store.
  EXPECT_TRUE(outcome([](auto& tx) { tx.set("own", "1"), tx.get("own"); }, "own"));
}

TEST(Engine, WriteSkewIsRefused) {
  TemporaryStore store;
  set(*store, "x", "1");
  set(*store, "y", "1");
  auto first = store->begin();
  auto second = store->begin();
  first->get("x"), first->set("y", "0");
  second->get("y"), second->set("x", "0");
  first->commit();
  EXPECT_EQ(code_of([&] { second->commit(); }), ErrorCode::not_committed);
}

TEST(Engine, AReadOnlyTransactionNeverConflicts) {
  TemporaryStore store;
  auto tx = store->begin();
  tx->get("a");
  set(*store, "a", "1");
  tx->commit();
  EXPECT_EQ(tx->committed_version(), -1);
}

TEST(Engine, ClearedRangesConflictToo) {
  TemporaryStore store;
  set(*store, "b", "1");
  auto tx = store->begin();
  tx->get("b"), tx->set("z", "1");
  store->run([](Transaction& other) { other.clear_range("a", "c"); });
  EXPECT_EQ(code_of([&] { tx->commit(); }), ErrorCode::not_committed);
}

TEST(Engine, AddedWriteConflictsCount) {
  TemporaryStore store;
  auto tx = store->begin();
  tx->get("b"), tx->set("z", "1");
  store->run([](Transaction& other) { other.add_write_conflict({"a", "c"}); });
  EXPECT_EQ(code_of([&] { tx->commit(); }), ErrorCode::not_committed);
}

TEST(Engine, RunRetriesUntilItIsCommittedOnce) {
  TemporaryStore store;
  constexpr int kThreads = 4, kRounds = 100;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        store->run([](Transaction& tx) {
          const int n = std::stoi(tx.get("n").value_or("0"));
          tx.set("n", std::to_string(n + 1));
          tx.add("blind", 1);
        });
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(get(*store, "n"), std::to_string(kThreads * kRounds));
  EXPECT_EQ(store->run([](Transaction& tx) { return decode_counter(tx.get("blind")); }), kThreads * kRounds);
}

TEST(Engine, AtomicOperationsInOneGroupBuildOnEachOther) {
  TemporaryStore store;
  // Many threads commit at once, so groups of several form; plain writes, clears and range clears go in
  // between.
  constexpr int kThreads = 8, kRounds = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        store->run([&](Transaction& tx) {
          tx.add("counter", 1);
          const std::string own = "own" + std::to_string(t);
          if (i % 3 == 0) tx.set(own, std::string(8, '\0'));
          if (i % 3 == 1) tx.clear_range(own, own + "~");
          tx.add(own, i);
          tx.atomic(AtomicOp::max, "max", std::string(1, static_cast<char>(t)));
        });
        const auto seen =
            store->run([&](Transaction& tx) { return decode_counter(tx.get("own" + std::to_string(t))); });
        ASSERT_EQ(seen, i % 3 == 2 ? i + i - 1 : i);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(store->run([](Transaction& tx) { return decode_counter(tx.get("counter")); }),
            kThreads * kRounds);
  EXPECT_EQ(get(*store, "max"), std::string(1, static_cast<char>(kThreads - 1)));
}

TEST(Engine, AtomicOperations) {
  TemporaryStore store;
  store->run([](Transaction& tx) {
    tx.atomic(AtomicOp::byte_min, "bmin", "m");
    tx.atomic(AtomicOp::byte_min, "bmin", "a");
    tx.atomic(AtomicOp::byte_max, "bmax", "m");
    tx.atomic(AtomicOp::byte_max, "bmax", "a");
    tx.atomic(AtomicOp::min, "min", "\x05");
    tx.atomic(AtomicOp::max, "max", "\x05");
    tx.set("cc", "x");
    tx.set("cc2", "x");
  });
  store->run([](Transaction& tx) {
    tx.atomic(AtomicOp::compare_and_clear, "cc", "x");
    tx.atomic(AtomicOp::compare_and_clear, "cc2", "y");
    tx.atomic(AtomicOp::min, "min", "\x03");
    tx.atomic(AtomicOp::max, "max", "\x03");
  });
  EXPECT_EQ(get(*store, "bmin"), "a");
  EXPECT_EQ(get(*store, "bmax"), "m");
  EXPECT_EQ(get(*store, "min"), "\x03");
  EXPECT_EQ(get(*store, "max"), "\x05");
  EXPECT_EQ(get(*store, "cc"), "(none)");
  EXPECT_EQ(get(*store, "cc2"), "x");
}

TEST(Engine, VersionstampsGrowAndNameTheCommit) {
  TemporaryStore store;
  const std::string placeholder(10, '\xff');
  const std::string offset_1("\x01\0\0\0", 4), offset_0("\0\0\0\0", 4);
  std::vector<std::string> stamps;
  for (int i = 0; i < 3; ++i) {
    auto tx = store->begin();
    tx->set_versionstamped_key("s" + placeholder + offset_1, std::to_string(i));
    tx->set_versionstamped_value("last", placeholder + "!" + offset_0);
    EXPECT_EQ(code_of([&] { tx->get("last"); }), ErrorCode::accessed_unreadable);
    tx->commit();
    stamps.push_back(tx->versionstamp());
    EXPECT_EQ(get(*store, "s" + stamps.back()), std::to_string(i));
    EXPECT_EQ(get(*store, "last"), stamps.back() + "!");
  }
  EXPECT_LT(stamps[0], stamps[1]);
  EXPECT_LT(stamps[1], stamps[2]);
  store.reopen();
  auto tx = store->begin();
  tx->set("a", "1");
  tx->commit();
  EXPECT_LT(stamps[2], tx->versionstamp());
}

TEST(Engine, MalformedVersionstampsAreRefused) {
  TemporaryStore store;
  auto tx = store->begin();
  EXPECT_EQ(code_of([&] { tx->set_versionstamped_key("ab", ""); }), ErrorCode::client_invalid_operation);
  EXPECT_EQ(code_of([&] { tx->set_versionstamped_key(std::string("123456789\0\0\0\0", 13), ""); }),
            ErrorCode::client_invalid_operation);
  EXPECT_EQ(code_of([&] { tx->set_versionstamped_value("k", "1234567890\xff\xff\xff\xff"); }),
            ErrorCode::client_invalid_operation);
}

TEST(Engine, Limits) {
  TemporaryStore store;
  auto tx = store->begin();
  EXPECT_EQ(code_of([&] { tx->set(std::string(kMaxKeyBytes + 1, 'k'), ""); }), ErrorCode::key_too_large);
  EXPECT_EQ(code_of([&] { tx->set("k", std::string(kMaxValueBytes + 1, 'v')); }), ErrorCode::value_too_large);
  EXPECT_EQ(code_of([&] { tx->set("\xff", ""); }), ErrorCode::key_outside_legal_range);
  tx->set(std::string(kMaxKeyBytes, 'k'), std::string(kMaxValueBytes, 'v'));
  tx->commit();
  EXPECT_EQ(code_of([&] { tx->set("k", "v"); }), ErrorCode::used_during_commit);
  tx->reset();
  for (int i = 0; i < 101; ++i) tx->set("k" + std::to_string(i), std::string(kMaxValueBytes, 'v'));
  EXPECT_EQ(code_of([&] { tx->commit(); }), ErrorCode::transaction_too_large);
  EXPECT_EQ(get(*store, "k1"), "(none)");
}

TEST(Engine, ATransactionLivesFiveSeconds) {
  ManualClock clock;
  TemporaryStore store(&clock);
  auto tx = store->begin();
  tx->set("a", "1");
  clock.advance(kTransactionLifetime);
  tx->get("a");
  clock.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(code_of([&] { tx->get("b"); }), ErrorCode::transaction_too_old);
  EXPECT_EQ(code_of([&] { tx->commit(); }), ErrorCode::transaction_too_old);
}

TEST(Engine, ConflictsAreRememberedAsLongAsATransactionLives) {
  ManualClock clock;
  TemporaryStore store(&clock);
  auto tx = store->begin();
  tx->get("a");
  tx->set("z", "1");
  set(*store, "a", "2");
  for (int i = 0; i < 49; ++i) {
    clock.advance(std::chrono::milliseconds(100));
    set(*store, "other" + std::to_string(i), "x");
  }
  EXPECT_EQ(code_of([&] { tx->commit(); }), ErrorCode::not_committed);
}

// A clock that jumps when it has been read once after arm(): between the transaction's own look at its age
// and the committer's turn, as when the process was stopped or the disk stalled just then.
class JumpingClock final : public Clock {
 public:
  MonotonicTime now() const override {
    const auto now = base_.now();
    if (armed_.exchange(false)) base_.advance(std::chrono::seconds(7));
    return now;
  }
  std::int64_t wall_ms() const override { return base_.wall_ms(); }
  bool wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                  MonotonicTime deadline, const std::function<bool()>& done) const override {
    return base_.wait_until(lock, changed, deadline, done);
  }
  void arm() { armed_ = true; }

 private:
  mutable ManualClock base_;
  mutable std::atomic<bool> armed_ = false;
};

TEST(Engine, ACommitThatComesTooLateForItsConflictsIsRefused) {
  JumpingClock clock;
  TemporaryStore store(&clock);
  auto tx = store->begin();
  tx->get("a");
  tx->set("a", "1");
  set(*store, "a", "2");
  clock.arm();
  EXPECT_EQ(code_of([&] { tx->commit(); }), ErrorCode::transaction_too_old);
  EXPECT_EQ(get(*store, "a"), "2");
}

TEST(Engine, ALateCommitWithoutReadsIsFine) {
  JumpingClock clock;
  TemporaryStore store(&clock);
  auto tx = store->begin();
  tx->set("a", "1");
  set(*store, "a", "2");
  clock.arm();
  tx->commit();
  EXPECT_EQ(get(*store, "a"), "1");
}

TEST(Engine, AReadOnlyTransactionMayEndLate) {
  ManualClock clock;
  TemporaryStore store(&clock);
  auto tx = store->begin();
  tx->get("a");
  clock.advance(kTransactionLifetime * 2);
  tx->commit();
  EXPECT_EQ(tx->committed_version(), -1);
}

TEST(Engine, AWatchThatIsSetDuringACommitIsNotLost) {
  TemporaryStore store;
  SystemClock clock;
  for (int i = 0; i < 3000; ++i) {
    // Nobody watches when the commit begins.
    std::latch ready(2);
    std::thread writer([&] {
      ready.arrive_and_wait();
      set(*store, "k", std::to_string(i));
    });
    ready.arrive_and_wait();
    std::string seen;
    const auto watch = store->run([&](Transaction& tx) {
      seen = tx.get("k").value_or("");
      return tx.watch("k");
    });
    writer.join();
    if (seen == std::to_string(i)) continue;
    ASSERT_TRUE(watch->wait_until(clock, clock.now() + std::chrono::seconds(5))) << i;
  }
}

TEST(Engine, AClearedRangeTakesVersionstampedKeysOfTheSameTransactionWithIt) {
  TemporaryStore store;
  const std::string placeholder(10, '\xff');
  const std::string offset_1("\x01\0\0\0", 4);
  store->run([&](Transaction& tx) {
    tx.set_versionstamped_key("s" + placeholder + "1" + offset_1, "before");
    tx.clear_range("s", "t");
    tx.set_versionstamped_key("s" + placeholder + "2" + offset_1, "after");
    tx.set_versionstamped_key("u" + placeholder + offset_1, "elsewhere");
    tx.clear_range("a", "b");
  });
  std::string values;
  store->run([&](Transaction& tx) {
    for (const auto& row : tx.get_range({"", "\xff"}).rows) values += row.value + " ";
  });
  EXPECT_EQ(values, "after elsewhere ");
}

TEST(Engine, AWatchFiresOnAChangeOnly) {
  TemporaryStore store;
  SystemClock clock;
  const auto soon = [&] { return clock.now() + std::chrono::seconds(30); };
  set(*store, "k", "1");
  const auto watch_key = [&] { return store->run([](Transaction& tx) { return tx.watch("k"); }); };

  auto watch = watch_key();
  set(*store, "other", "x");
  set(*store, "k", "1");
  EXPECT_FALSE(watch->fired());
  set(*store, "k", "2");
  EXPECT_TRUE(watch->wait_until(clock, soon()));

  watch = watch_key();
  store->run([](Transaction& tx) { tx.clear_range("a", "z"); });
  EXPECT_TRUE(watch->wait_until(clock, soon()));

  watch = watch_key();
  store->run([](Transaction& tx) { tx.add("k", 1); });
  EXPECT_TRUE(watch->wait_until(clock, soon()));

  // A change between the read and the commit of the watching transaction is not lost.
  auto tx = store->begin();
  watch = tx->watch("k");
  set(*store, "k", "3");
  tx->commit();
  EXPECT_TRUE(watch->wait_until(clock, soon()));

  std::promise<void> called;
  watch = watch_key();
  watch->on_end([&] { called.set_value(); });
  set(*store, "k", "4");
  EXPECT_EQ(called.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
}

TEST(Engine, WatchesHaveALimitAndForgottenOnesDoNotCount) {
  TemporaryDirectory directory;
  SystemClock clock;
  SystemRng rng;
  EmbeddedDatabase db({.directory = directory.path() + "/s", .durable = false, .max_watches = 3}, clock, rng);
  std::vector<std::shared_ptr<Watch>> held;
  for (int i = 0; i < 3; ++i) held.push_back(db.run([](Transaction& tx) { return tx.watch("k"); }));
  EXPECT_EQ(code_of([&] { db.run([](Transaction& tx) { return tx.watch("k"); }); }),
            ErrorCode::too_many_watches);
  held.clear();
  held.push_back(db.run([](Transaction& tx) { return tx.watch("k"); }));
}

TEST(Engine, CallbacksRunAfterTheCommittedTryOnly) {
  TemporaryStore store;
  int ran = 0;
  int tries = 0;
  store->run([&](Transaction& tx) {
    tx.get("a");
    tx.set("z", "1");
    tx.after_commit([&] { ++ran; });
    if (++tries == 1) set(*store, "a", "1");
  });
  EXPECT_EQ(tries, 2);
  EXPECT_EQ(ran, 1);
}

TEST(Engine, ManyCommitsShareASync) {
  TemporaryDirectory directory;
  SystemClock clock;
  SystemRng rng;
  EmbeddedDatabase db({.directory = directory.path() + "/s"}, clock, rng);
  // One slow group holds up the committer while the others queue: they must then go together.
  constexpr int kThreads = 64;
  std::latch ready(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      ready.arrive_and_wait();
      for (int i = 0; i < 20; ++i) set(db, std::to_string(t * 1000 + i), std::string(1000, 'x'));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(db.stats().commits, kThreads * 20u);
  EXPECT_LT(db.stats().groups, kThreads * 20u / 4);
}

TEST(Engine, ADirectoryIsLockedVersionedAndNotSomebodyElses) {
  TemporaryDirectory directory;
  SystemClock clock;
  SystemRng rng;
  const std::string path = directory.path() + "/store";
  const auto reason = [&](const std::string& dir) -> std::string {
    try {
      EmbeddedDatabase db({.directory = dir}, clock, rng);
    } catch (const divan::Error& error) { return error.reason(); }
    return "opened";
  };
  {
    EmbeddedDatabase db({.directory = path}, clock, rng);
    EXPECT_THAT(reason(path), testing::AllOf(testing::HasSubstr(path), testing::HasSubstr("in use")));
  }
  EXPECT_EQ(reason(path), "opened");
  std::ofstream(path + "/FORMAT") << "divan embedded store, format 99\n";
  EXPECT_THAT(reason(path), testing::HasSubstr("newer"));
  std::ofstream(path + "/FORMAT") << "something else\n";
  EXPECT_THAT(reason(path), testing::HasSubstr("damaged"));
  std::filesystem::remove(path + "/FORMAT");
  EXPECT_THAT(reason(path), testing::HasSubstr("not one of Divan's"));
  std::ofstream(directory.path() + "/file") << "x";
  EXPECT_THAT(reason(directory.path() + "/file"), testing::HasSubstr("Data directory"));
}

// Random writes and reads of one transaction over random stored rows, against a plain map.
RC_GTEST_PROP(Engine, ReadYourWritesAgreesWithAPlainMap, ()) {
  static TemporaryStore store;
  std::map<std::string, std::string> model;
  const auto key =
      rc::gen::map(rc::gen::inRange(0, 20), [](int i) { return std::string(1, static_cast<char>('a' + i)); });
  const auto value = rc::gen::map(rc::gen::inRange(0, 1000), [](int i) { return std::to_string(i); });
  store->run([&](Transaction& tx) {
    tx.clear_range("", "\xff");
    for (int i = *rc::gen::inRange(0, 20); i > 0; --i) {
      const auto k = *key;
      tx.set(k, model[k] = *value);
    }
  });
  store->run([&](Transaction& tx) {
    for (int i = *rc::gen::inRange(0, 30); i > 0; --i) {
      auto a = *key, b = *key;
      if (a > b) std::swap(a, b);
      switch (*rc::gen::inRange(0, 5)) {
        case 0: tx.set(a, model[a] = *value); break;
        case 1: tx.clear(a), model.erase(a); break;
        case 2: tx.clear_range(a, b), model.erase(model.lower_bound(a), model.lower_bound(b)); break;
        case 3: {
          const auto operand = *value;
          tx.atomic(AtomicOp::byte_max, a, operand);
          auto& present = model[a];
          present = std::max(present, operand);
          break;
        }
        default: {
          const bool reverse = *rc::gen::arbitrary<bool>();
          const std::size_t limit = *rc::gen::inRange<std::size_t>(0, 5);
          std::vector<std::pair<std::string, std::string>> expected(model.lower_bound(a),
                                                                    model.lower_bound(b));
          if (reverse) std::reverse(expected.begin(), expected.end());
          if (limit != 0 && expected.size() > limit) expected.resize(limit);
          std::vector<std::pair<std::string, std::string>> found;
          for (auto& row : tx.get_range({a, b}, {.limit = limit, .reverse = reverse}).rows) {
            found.emplace_back(row.key, row.value);
          }
          RC_ASSERT(found == expected);
        }
      }
    }
  });
  std::map<std::string, std::string> stored;
  store->run([&](Transaction& tx) {
    for (auto& row : tx.get_range({"", "\xff"}).rows) stored.emplace(row.key, row.value);
  });
  RC_ASSERT(stored == model);
}

}  // namespace
}  // namespace divan::kv::embedded
