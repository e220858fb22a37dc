// Watches.
#include <future>

#include "divan/kv/conformance/conformance.h"

namespace divan::kv::conformance {
namespace {

std::shared_ptr<Watch> watch_key(Database& db, std::string_view key = "k") {
  return db.run([&](Transaction& tx) { return tx.watch(key); });
}

// A watch that was set later and has fired shows that the one before had its chance.
#define EXPECT_STILL_WAITING(watch)                             \
  do {                                                          \
    const auto marker = watch_key(db, "marker");                \
    db.run([](Transaction& later) { later.add("marker", 1); }); \
    ASSERT_TRUE(marker->wait_until(clock_, soon()));            \
    EXPECT_FALSE((watch)->fired() || (watch)->cancelled());     \
  } while (false)

TEST_P(Conformance, AWatchFiresWhenTheValueChanges) {
  set("k", "1");
  const std::vector<std::function<void(Transaction&)>> changes = {
      [](Transaction& tx) { tx.set("k", "2"); },
      [](Transaction& tx) { tx.clear("k"); },
      [](Transaction& tx) { tx.add("k", 1); },
      [](Transaction& tx) { tx.clear_range("", "\xff"); },
      [](Transaction& tx) { tx.set_versionstamped_value("k", stampable("")); },
      [](Transaction& tx) { tx.atomic(AtomicOp::byte_max, "k", "\xf0"); },
  };
  for (const auto& change : changes) {
    const auto watch = watch_key(db);
    EXPECT_FALSE(watch->fired());
    db.run(change);
    ASSERT_TRUE(watch->wait_until(clock_, soon()));
    EXPECT_TRUE(watch->fired());
    EXPECT_FALSE(watch->cancelled());
  }
}

TEST_P(Conformance, AllWatchesInARangeThatIsClearedFire) {
  std::vector<std::shared_ptr<Watch>> watches;
  for (const std::string key : {"ka", "kb", "kb", "kc", "kd"}) {
    set(key, "1");
    watches.push_back(watch_key(db, key));
  }
  db.run([](Transaction& tx) { tx.clear_range("k", "l"); });
  for (const auto& watch : watches) EXPECT_TRUE(watch->wait_until(clock_, soon()));
}

TEST_P(Conformance, AWatchDoesNotFireWithoutAChange) {
  set("k", "1");
  const auto watch = watch_key(db);
  set("k", "1");
  set("l", "2");
  db.run([](Transaction& tx) { tx.clear_range("l", "z"), tx.add_write_conflict({"", "\xff"}); });
  set("j", "beside it");
  const auto beside = watch_key(db, "j");
  db.run([](Transaction& tx) { tx.clear_range("a", "z"), tx.set("k", "1"); });
  EXPECT_TRUE(beside->wait_until(clock_, soon()));
  EXPECT_STILL_WAITING(watch);
  set("k", "2");
  EXPECT_TRUE(watch->wait_until(clock_, soon()));
}

TEST_P(Conformance, AWatchMayMissAChangeBackButNotTheNextOne) {
  set("k", "1");
  const auto watch = watch_key(db);
  set("k", "2");
  set("k", "1");
  set("k", "3");
  EXPECT_TRUE(watch->wait_until(clock_, soon()));
}

TEST_P(Conformance, AWatchSeesWhatItsTransactionWrote) {
  set("k", "1");
  const auto watch = db.run([](Transaction& tx) {
    tx.set("k", "2");
    return tx.watch("k");
  });
  EXPECT_STILL_WAITING(watch);
  set("k", "1");
  EXPECT_TRUE(watch->wait_until(clock_, soon()));
}

TEST_P(Conformance, AChangeBetweenReadAndCommitIsNotLost) {
  set("k", "1");
  const auto tx = db.begin();
  const auto watch = tx->watch("k");
  set("k", "2");
  tx->commit();
  EXPECT_TRUE(watch->wait_until(clock_, soon()));
  EXPECT_TRUE(watch->fired());
}

TEST_P(Conformance, WritesOfItsTransactionAfterItFireAWatchAtTheCommit) {
  set("k", "1");
  const auto watch = db.run([](Transaction& tx) {
    auto early = tx.watch("k");
    tx.set("k", "2");
    return early;
  });
  EXPECT_TRUE(watch->wait_until(clock_, soon()));
  EXPECT_TRUE(watch->fired());
  const auto waiting = db.run([](Transaction& tx) {
    auto early = tx.watch("k");
    tx.set("k", "2");
    return early;
  });
  EXPECT_STILL_WAITING(waiting);
}

TEST_P(Conformance, AWatchOutlivesItsTransaction) {
  const auto tx = db.begin();
  const auto watch = tx->watch("k");
  tx->commit();
  tx->reset();
  const auto other = tx->watch("k");
  tx->reset();
  EXPECT_TRUE(other->cancelled());
  EXPECT_STILL_WAITING(watch);
  set("k", "1");
  EXPECT_TRUE(watch->wait_until(clock_, soon()));
  EXPECT_TRUE(watch->fired());
}

TEST_P(Conformance, AWatchIsCancelledWithItsTransaction) {
  auto tx = db.begin();
  auto watch = tx->watch("k");
  EXPECT_FALSE(watch->cancelled());
  tx->reset();
  EXPECT_TRUE(watch->cancelled());
  watch = tx->watch("k");
  tx.reset();
  EXPECT_TRUE(watch->cancelled());
  EXPECT_TRUE(watch->wait_until(clock_, soon()));

  tx = db.begin();
  tx->get("a"), tx->set("z", "1");
  watch = tx->watch("k");
  set("a", "1");
  EXPECT_EQ(code_of([&] { tx->commit(); }), ErrorCode::not_committed);
  EXPECT_TRUE(watch->cancelled());
  set("k", "2");
  EXPECT_FALSE(watch->fired());
}

TEST_P(Conformance, AWatchIsCancelledWithTheStore) {
  const auto watch = watch_key(db);
  store_.reset();
  EXPECT_TRUE(watch->cancelled());
}

TEST_P(Conformance, ACallbackIsCalledOnce) {
  std::promise<void> called;
  std::atomic<int> calls = 0;
  auto watch = watch_key(db);
  watch->on_end([&] {
    if (++calls == 1) called.set_value();
  });
  set("k", "2");
  ASSERT_EQ(called.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  set("k", "3");
  EXPECT_STILL_WAITING(watch_key(db));
  EXPECT_EQ(calls, 1);
  // After the end the callback is called at once.
  watch->on_end([&] { ++calls; });
  EXPECT_EQ(calls, 2);
}

TEST_P(Conformance, ACallbackMayReadCommitAndWatch) {
  constexpr int kSteps = 5;
  std::promise<void> done;
  std::vector<std::shared_ptr<Watch>> watches;
  // Each change that is seen makes the next one.
  std::function<void(int)> follow = [&](int step) {
    watches.push_back(watch_key(db, "k" + std::to_string(step)));
    watches.back()->on_end([&, step] {
      const std::string seen = get("k" + std::to_string(step));
      if (step == kSteps) return done.set_value();
      follow(step + 1);
      set("k" + std::to_string(step + 1), seen + std::to_string(step));
    });
  };
  follow(1);
  set("k1", "0");
  ASSERT_EQ(done.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_EQ(stored(), "k1=0 k2=01 k3=012 k4=0123 k5=01234 ");
}

TEST_P(Conformance, ManyWatchesOfOneKeyAllFire) {
  std::vector<std::shared_ptr<Watch>> watches;
  for (std::size_t i = 0; i < kMaxWatches; ++i) watches.push_back(watch_key(db));
  set("k", "2");
  for (const auto& watch : watches) EXPECT_TRUE(watch->wait_until(clock_, soon()));
}

TEST_P(Conformance, WatchesHaveALimit) {
  std::vector<std::shared_ptr<Watch>> held;
  for (std::size_t i = 0; i < kMaxWatches; ++i) held.push_back(watch_key(db, std::to_string(i)));
  EXPECT_EQ(code_of([&] { watch_key(db); }), ErrorCode::too_many_watches);
  // The transaction is good for everything else: its key is polled.
  db.run([&](Transaction& tx) {
    EXPECT_EQ(code_of([&] { tx.watch("k"); }), ErrorCode::too_many_watches);
    tx.set("k", "1");
  });
  EXPECT_EQ(get("k"), "1");
  // Watches without owners, and those that have ended, do not count.
  held.pop_back();
  held.push_back(watch_key(db));
  set("0", "changed");
  ASSERT_TRUE(held[0]->wait_until(clock_, soon()));
  held.push_back(watch_key(db));
  EXPECT_EQ(code_of([&] { watch_key(db); }), ErrorCode::too_many_watches);
  // Not even if it had fired before it was set.
  held.clear();
  for (std::size_t i = 0; i < kMaxWatches + 1; ++i) {
    const auto late = db.begin();
    const std::string key = "late" + std::to_string(i);
    held.push_back(late->watch(key));
    set(key, "changed");
    late->commit();
    ASSERT_TRUE(held.back()->wait_until(clock_, soon()));
  }
  // Within one transaction, too.
  held.clear();
  const auto tx = db.begin();
  for (std::size_t i = 0; i < kMaxWatches; ++i) held.push_back(tx->watch(std::to_string(i)));
  EXPECT_EQ(code_of([&] { tx->watch("k"); }), ErrorCode::too_many_watches);
}

TEST_P(Conformance, TheLimitOfWatchesIsOneForAllTransactions) {
  const auto many = ErrorCode::too_many_watches;
  std::vector<std::shared_ptr<Watch>> held;
  const auto watch_some = [&](Transaction& tx, std::size_t from, std::size_t to) {
    for (auto i = from; i < to; ++i) held.push_back(tx.watch(std::to_string(i)));
  };
  const auto first = db.begin();
  auto second = db.begin(), third = db.begin();
  watch_some(*first, 0, kMaxWatches / 2);
  watch_some(*second, kMaxWatches / 2, kMaxWatches);
  for (auto* tx : {first.get(), second.get(), third.get()}) {
    EXPECT_EQ(code_of([&] { tx->watch("k"); }), many);
  }
  EXPECT_EQ(code_of([&] { watch_key(db); }), many);
  // Those that are set still count.
  first->commit();
  EXPECT_EQ(code_of([&] { third->watch("k"); }), many);
  // What ends with its transaction does not.
  second->reset();
  watch_some(*third, kMaxWatches / 2, kMaxWatches);
  EXPECT_EQ(code_of([&] { second->watch("k"); }), many);
  third.reset();
  watch_some(*second, kMaxWatches / 2, kMaxWatches);
  second->commit();
  EXPECT_EQ(code_of([&] { watch_key(db); }), many);
  // Watches that were admitted work.
  for (std::size_t i = 0; i < kMaxWatches; ++i) set(std::to_string(i), "changed");
  for (std::size_t i = 0; i < kMaxWatches / 2; ++i) {
    EXPECT_TRUE(held[i]->wait_until(clock_, soon()) && held[i]->fired());
  }
  for (std::size_t i = 0; i < kMaxWatches / 2; ++i) {
    EXPECT_TRUE(held[kMaxWatches / 2 + i]->cancelled() && held[kMaxWatches + i]->cancelled());
    const auto& last = held[kMaxWatches * 3 / 2 + i];
    EXPECT_TRUE(last->wait_until(clock_, soon()) && last->fired());
  }
  watch_some(*db.begin(), 0, kMaxWatches);
  // Nor what ends with a commit that is refused.
  held.clear();
  second = db.begin();
  second->get("0");
  watch_some(*second, 0, kMaxWatches);
  second->set("a", "1");
  set("0", "again");
  EXPECT_EQ(code_of([&] { second->commit(); }), ErrorCode::not_committed);
  watch_some(*db.begin(), 0, kMaxWatches);
}

}  // namespace
}  // namespace divan::kv::conformance
