#include "divan/kv/embedded/engine.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/embedded/testing/simulated_disk.h"

namespace divan::kv::embedded {
namespace {

std::string get(Database& db, std::string_view key) {
  return db.run([&](Transaction& tx) { return tx.get(key).value_or("(none)"); });
}

void set(Database& db, std::string_view key, std::string_view value) {
  db.run([&](Transaction& tx) { tx.set(key, value); });
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

TEST(Engine, TheSizeOfAPartIsRoughlyKnown) {
  TemporaryStore store;
  SeededRng rng(7);  // not to be compressed
  for (int part = 0; part < 8; ++part) {
    store->run([&](Transaction& tx) {
      for (int row = 0; row < 1000; ++row) tx.set(fmt::format("k{}{:03}", part, row), rng.bytes(900));
    });
  }
  store.reopen();  // from memory into files, where it is no guess any more
  const auto all = store->estimate_bytes({"", "z"});
  const auto half = store->estimate_bytes({"k4", "k8"});
  EXPECT_GT(all, 7'000'000);
  EXPECT_LT(all, 9'000'000);
  EXPECT_NEAR(static_cast<double>(half), static_cast<double>(all) / 2, 500'000);
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
  bool wait_until(std::unique_lock<Mutex>& lock, ConditionVariable& changed, MonotonicTime deadline,
                  const std::function<bool()>& done) const override {
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

TEST(Engine, WhatAWatchCallsMayCommit) {
  TemporaryStore store;
  const auto watch = store->run([](Transaction& tx) { return tx.watch("k"); });
  watch->on_end([&] { set(*store, "log", "fired"); });
  set(*store, "k", "1");
  EXPECT_EQ(get(*store, "log"), "fired");
}

// It holds up the commits of others.
TEST(EngineDeathTest, ACallbackOfACommitMustNotCommit) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";  // the commit needs the store's threads
  TemporaryStore store;
  const auto tx = store->begin();
  tx->set("k", "1");
  const auto commit_another = [&] {
    std::promise<void> done;
    tx->start_commit([&] { set(*store, "log", "done"); });
    done.get_future().wait();
  };
  EXPECT_DEATH(commit_another(), "a callback of a commit commits");
}

TEST(Engine, ADirectoryMayBeCalledLikeALock) {
  TemporaryDirectory directory;
  const SystemClock clock;
  SystemRng rng;
  const std::string path = directory.path() + "/warlock";
  const auto open = [&] { EmbeddedDatabase({.directory = path}, clock, rng); };
  open();
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().filename().string().starts_with("MANIFEST")) std::filesystem::remove(entry.path());
  }
  try {
    open();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.reason(),
                testing::AllOf(testing::HasSubstr("MANIFEST"), testing::Not(testing::HasSubstr("in use"))));
  }
}

TEST(Engine, AFloodOfWritesMakesTransactionsOldEarly) {
  TemporaryDirectory directory;
  SystemClock clock;
  SystemRng rng;
  EmbeddedDatabase db({.directory = directory.path() + "/s", .durable = false, .max_conflict_bytes = 80'000},
                      clock, rng);
  const auto old = db.begin();
  old->get("a"), old->set("b", "1");
  const auto blind = db.begin();
  blind->set("c", "1");
  for (int i = 0; i < 50; ++i) {
    db.run([&](Transaction& tx) {
      for (int k = 0; k < 100; ++k) tx.set(fmt::format("k{}-{}", i, k), "x");
      tx.set(std::to_string(i) + std::string(4000, 'k'), "x");
      tx.clear_range(fmt::format("r{}", i), fmt::format("r{}~", i));
    });
    ASSERT_LE(db.stats().conflict_entries, 1200u);
  }
  EXPECT_EQ(code_of([&] { old->commit(); }), ErrorCode::transaction_too_old);
  blind->commit();
  // Younger ones are checked as ever.
  const auto young = db.begin();
  young->get("a"), young->set("b", "1");
  set(db, "a", "2");
  EXPECT_EQ(code_of([&] { young->commit(); }), ErrorCode::not_committed);
}

// However fast the disk is: a sync takes until each client has a commit under way or has done its last one,
// except the client that leads, whose commit may have been in the previous group.
TEST(Engine, ManyCommitsShareASync) {
  constexpr int kClients = 64, kCommits = 20;
  const auto disk = std::make_shared<SimulatedDisk>();
  SimulatedMachine machine(disk);
  SystemClock clock;
  SystemRng rng;
  EmbeddedDatabase db({.directory = "/store", .env = &machine}, clock, rng);
  std::atomic<std::uint64_t> begun = 0, clients_done = 0;
  disk->set_fault([&](SimulatedDisk::Operation operation, const std::string& file) {
    if (operation == SimulatedDisk::Operation::sync && file.ends_with(".log")) {
      const std::uint64_t committed = db.stats().commits;
      while (begun - committed + clients_done < kClients - 1) std::this_thread::yield();
    }
    return rocksdb::IOStatus::OK();
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kClients; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCommits; ++i) {
        const auto tx = db.begin();
        tx->set(std::to_string(t * 1000 + i), "x");
        ++begun;
        tx->commit();
      }
      ++clients_done;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(db.stats().commits, std::uint64_t{kClients * kCommits});
  EXPECT_LT(db.stats().groups, kClients * kCommits / 4u);
}

TEST(Engine, ACommitThatIsStartedHoldsNoThread) {
  const auto disk = std::make_shared<SimulatedDisk>();
  SimulatedMachine machine(disk);
  SystemClock clock;
  SystemRng rng;
  EmbeddedDatabase db({.directory = "/store", .env = &machine}, clock, rng);
  std::promise<void> go_on;
  disk->set_fault(
      [&, wait = go_on.get_future().share()](SimulatedDisk::Operation operation, const std::string& file) {
        if (operation == SimulatedDisk::Operation::sync && file.ends_with(".log")) wait.wait();
        return rocksdb::IOStatus::OK();
      });
  const auto first = db.begin(), second = db.begin();
  std::promise<void> first_done, second_done;
  first->set("a", "1");
  ASSERT_TRUE(first->start_commit([&] { first_done.set_value(); }));
  second->set("b", "2");
  ASSERT_TRUE(second->start_commit([&] { second_done.set_value(); }));
  go_on.set_value();  // this thread is here while the disk does not respond
  first_done.get_future().wait();
  second_done.get_future().wait();
  first->commit();
  second->commit();
  EXPECT_EQ(get(db, "a") + get(db, "b"), "12");
  EXPECT_NE(first->versionstamp(), second->versionstamp());
  EXPECT_FALSE(db.begin()->start_commit([] {})) << "there is nothing to write";
}

// A commit is quick if nobody else commits and the last one was.
TEST(Engine, ASlowDiskOrACommitUnderWayIsKnown) {
  const auto disk = std::make_shared<SimulatedDisk>();
  SimulatedMachine machine(disk);
  ManualClock clock;
  SystemRng rng;
  EmbeddedDatabase db({.directory = "/store", .env = &machine}, clock, rng);
  Duration sync_takes(0);
  bool quick_during_commit = true;
  disk->set_fault([&](SimulatedDisk::Operation operation, const std::string& file) {
    if (operation == SimulatedDisk::Operation::sync && file.ends_with(".log")) {
      clock.advance(sync_takes);
      quick_during_commit = db.begin()->commits_quickly();
    }
    return rocksdb::IOStatus::OK();
  });
  // Once the committing threads wait for commits.
  const auto becomes_quick = [&] {
    for (int i = 0; i < 60'000 && !db.begin()->commits_quickly(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return db.begin()->commits_quickly();
  };
  EXPECT_TRUE(becomes_quick());
  set(db, "a", "1");
  EXPECT_FALSE(quick_during_commit);
  EXPECT_TRUE(becomes_quick());
  sync_takes = std::chrono::milliseconds(1);
  set(db, "a", "2");
  EXPECT_FALSE(db.begin()->commits_quickly());
  sync_takes = std::chrono::microseconds(999);
  set(db, "a", "3");
  EXPECT_TRUE(becomes_quick());
}

TEST(Engine, AStoreThatClosesCompletesStartedCommits) {
  TemporaryStore store;
  std::atomic<int> done = 0;
  std::vector<std::unique_ptr<Transaction>> started;
  for (int i = 0; i < 100; ++i) {
    started.push_back(store->begin());
    started.back()->set("k" + std::to_string(i), "v");
    ASSERT_TRUE(started.back()->start_commit([&] { ++done; }));
  }
  while (done < 100) std::this_thread::yield();
  for (const auto& tx : started) tx->commit();
  started.clear();
  store.reopen();
  EXPECT_EQ(get(*store, "k99"), "v");
}

TEST(Engine, ReadsThatWouldBlockAreRefused) {
  const auto disk = std::make_shared<SimulatedDisk>();
  SimulatedMachine machine(disk);
  SystemClock clock;
  SystemRng rng;
  const Options options{.directory = "/store", .cache_bytes = 0, .env = &machine};
  {
    EmbeddedDatabase db(options, clock, rng);
    set(db, "on disk", "1");
  }
  EmbeddedDatabase db(options, clock, rng);
  for (int i = 0; i < 4; ++i) set(db, "large" + std::to_string(i), std::string(kMaxValueBytes, 'x'));
  set(db, "in memory", "2");
  const std::vector<std::string> keys{"on disk"};
  const auto tx = db.begin();
  tx->forbid_blocking();
  EXPECT_EQ(tx->get("in memory"), "2");
  EXPECT_EQ(code_of([&] { tx->get("on disk"); }), ErrorCode::would_block);
  EXPECT_EQ(code_of([&] { tx->get_many(keys); }), ErrorCode::would_block);
  EXPECT_EQ(code_of([&] { tx->get_range({"o", "p"}); }), ErrorCode::would_block);
  EXPECT_EQ(code_of([&] { tx->get_range({"l", "m"}); }), ErrorCode::would_block) << "much to read";
  tx->reset();
  EXPECT_EQ(tx->get("on disk"), "1");
  EXPECT_EQ(tx->get_range({"l", "m"}).rows.size(), 4u);
}

TEST(Engine, WhatIsReadOnceIsNotCached) {
  const auto disk = std::make_shared<SimulatedDisk>();
  SimulatedMachine machine(disk);
  SystemClock clock;
  SystemRng rng;
  const Options options{.directory = "/store", .cache_bytes = 1 << 20, .env = &machine};
  {
    EmbeddedDatabase db(options, clock, rng);
    set(db, "large", std::string(50'000, 'x'));
    set(db, "other", std::string(50'000, 'y'));
  }
  EmbeddedDatabase db(options, clock, rng);
  const auto reader = db.begin();
  reader->read_once();
  EXPECT_EQ(reader->get("large")->size(), 50'000u);
  const std::vector<std::string> keys{"large"};
  EXPECT_EQ(reader->get_many(keys)[0]->size(), 50'000u);
  const auto quick = db.begin();
  quick->forbid_blocking();
  EXPECT_EQ(code_of([&] { quick->get("large"); }), ErrorCode::would_block);
  reader->reset();
  EXPECT_EQ(reader->get("large")->size(), 50'000u);
  EXPECT_EQ(quick->get("large")->size(), 50'000u);
}

// What a watch is compared with may have to come from the disk.
struct EngineWatches : testing::TestWithParam<bool> {
  // Commits on this thread, or as a caller that does not block.
  static void commit(Database& db, const std::string& key, const std::string& value) {
    if (!GetParam()) return set(db, key, value);
    const auto tx = db.begin();
    tx->set(key, value);
    std::promise<void> done;
    if (tx->start_commit([&] { done.set_value(); })) done.get_future().wait();
    tx->commit();
  }
};
INSTANTIATE_TEST_SUITE_P(Commits, EngineWatches, testing::Bool());

TEST_P(EngineWatches, AWatchThatWaitsForTheDiskHoldsNobodyUp) {
  const auto disk = std::make_shared<SimulatedDisk>();
  SimulatedMachine machine(disk);
  SystemClock clock;
  SystemRng rng;
  const Options options{.directory = "/store", .cache_bytes = 0, .env = &machine};
  {
    EmbeddedDatabase db(options, clock, rng);
    set(db, "watched", "1");
  }
  EmbeddedDatabase db(options, clock, rng);
  std::promise<void> syncs, reads, go_on_syncing, go_on_reading;
  std::atomic<bool> holds_sync = true, holds_read = false;
  disk->set_fault([&, sync = go_on_syncing.get_future().share(), read = go_on_reading.get_future().share()](
                      SimulatedDisk::Operation operation, const std::string& file) {
    using Operation = SimulatedDisk::Operation;
    if (operation == Operation::sync && file.ends_with(".log") && holds_sync.exchange(false)) {
      syncs.set_value();
      sync.wait();
    }
    if (operation == Operation::read && file.ends_with(".sst") && holds_read.exchange(false)) {
      reads.set_value();
      read.wait();
    }
    return rocksdb::IOStatus::OK();
  });
  // A watch that is set while a commit is under way is looked at after it.
  std::thread first([&] { commit(db, "a", "1"); });
  syncs.get_future().wait();
  const auto watch = db.run([](Transaction& tx) { return tx.watch("watched"); });
  holds_read = true;
  go_on_syncing.set_value();
  reads.get_future().wait();
  auto second = std::async(std::launch::async, [&] { commit(db, "b", "1"); });
  EXPECT_EQ(second.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  go_on_reading.set_value();
  first.join();
  second.get();
  EXPECT_FALSE(watch->fired());
  disk->set_fault({});
  set(db, "watched", "2");
  EXPECT_TRUE(watch->fired());
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
  std::ofstream(path + "/FORMAT") << "divan embedded store, format " << kOldestFormat - 1 << "\n";
  EXPECT_THAT(reason(path), testing::HasSubstr("older"));
  std::ofstream(path + "/FORMAT") << "something else\n";
  EXPECT_THAT(reason(path), testing::HasSubstr("damaged"));
  std::filesystem::remove(path + "/FORMAT");
  EXPECT_THAT(reason(path), testing::HasSubstr("not one of Divan's"));
  std::ofstream(directory.path() + "/file") << "x";
  EXPECT_THAT(reason(directory.path() + "/file"), testing::HasSubstr("Data directory"));
}

}  // namespace
}  // namespace divan::kv::embedded
