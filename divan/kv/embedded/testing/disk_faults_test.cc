// A disk that fails: clear errors that name the file, and never wrong or missing data without one.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <thread>

#include "divan/kv/embedded/testing/disk_fixture.h"

namespace divan::kv::embedded {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class DiskFaults : public OnSimulatedDisk {
 protected:
  // What this thread does, and not a compaction: after one of those has failed RocksDB writes nothing.
  void fail(Operation operation, const std::string& suffix, const rocksdb::IOStatus& with) {
    disk_->set_fault([=, thread = std::this_thread::get_id()](Operation done, const std::string& file) {
      const bool fails = done == operation && file.ends_with(suffix) && std::this_thread::get_id() == thread;
      return fails ? with : rocksdb::IOStatus::OK();
    });
  }
};

TEST_F(DiskFaults, AfterAFailedSyncNothingIsAcknowledgedUntilARestart) {
  for (const auto operation : {Operation::sync, Operation::append}) {
    auto store = open();
    set(*store, "a", "1");
    fail(operation, ".log", rocksdb::IOStatus::IOError("/disk/store/x.log", "Input/output error"));
    const auto before = store->begin()->read_version();
    auto tx = store->begin();
    tx->set("a", "2");
    EXPECT_THAT(reason_of([&] { tx->commit(); }), AllOf(HasSubstr(".log"), HasSubstr("Input/output")));
    EXPECT_EQ(tx->committed_version(), -1);
    EXPECT_THROW(tx->versionstamp(), Error);
    tx.reset();
    // What was not acknowledged is not seen, and reads go on.
    EXPECT_EQ(get(*store, "a"), "1");
    EXPECT_EQ(store->begin()->read_version(), before);
    disk_->set_fault({});
    EXPECT_THAT(reason_of([&] { set(*store, "b", "2"); }), HasSubstr("Input/output"));
    store.reset();
    store = open();
    EXPECT_THAT(get(*store, "a"), testing::AnyOf("1", "2"));
    EXPECT_EQ(get(*store, "b"), "(none)");
    set(*store, "a", "1");
    EXPECT_EQ(get(*store, "a"), "1");
  }
}

TEST_F(DiskFaults, AFullDiskIsSaid) {
  auto store = open();
  fail(Operation::append, ".log", rocksdb::IOStatus::NoSpace("/disk/store/x.log", "No space left on device"));
  EXPECT_THAT(reason_of([&] { set(*store, "a", "1"); }), HasSubstr("No space left"));
}

TEST_F(DiskFaults, AReadThatFailsIsAnErrorAndNotAMissingRow) {
  auto store = open();
  fill(*store, 0, 300);
  store.reset();
  store = open();
  fail(Operation::read, ".sst", rocksdb::IOStatus::IOError("/disk/store/x.sst", "Input/output error"));
  EXPECT_THAT(reason_of([&] { get(*store, "k00001"); }), HasSubstr(".sst"));
  EXPECT_THAT(reason_of([&] { store->run([](Transaction& tx) {
                                tx.get_range({"k", "l"});
                              }); }),
              HasSubstr(".sst"));
  EXPECT_THAT(reason_of([&] { store->dump([](auto, auto) { return true; }); }), HasSubstr(".sst"));
  disk_->set_fault({});
  EXPECT_EQ(get(*store, "k00001").size(), 1000u);
}

TEST_F(DiskFaults, AReadThatFailsInACommitFailsThatCommitOnly) {
  auto store = open();
  fill(*store, 0, 300);
  store.reset();
  store = open();
  for (const auto& write : std::initializer_list<std::function<void(Transaction&)>>{
           [](Transaction& tx) { tx.atomic(AtomicOp::byte_max, "k00001", "z"); },
           [](Transaction& tx) { tx.clear_range("k00001", "k00003"); }}) {
    fail(Operation::read, ".sst", rocksdb::IOStatus::IOError("/disk/store/x.sst", "Input/output error"));
    EXPECT_THAT(reason_of([&] {
                  store->run([&](Transaction& tx) {
                    tx.set("beside", "1");
                    write(tx);
                  });
                }),
                HasSubstr(".sst"));
    disk_->set_fault({});
    EXPECT_EQ(get(*store, "beside"), "(none)");
    set(*store, "other", "1");
    EXPECT_EQ(get(*store, "k00001").size(), 1000u);
  }
}

TEST_F(DiskFaults, WatchesFireIfTheirValueCannotBeRead) {
  auto store = open();
  fill(*store, 0, 300);
  store.reset();
  store = open();
  const auto tx = store->begin();
  const auto first = tx->watch("k00001"), second = tx->watch("k00200");
  bool called = false;
  tx->set("unrelated", "1");
  tx->after_commit([&] { called = true; });
  fail(Operation::read, ".sst", rocksdb::IOStatus::IOError("/disk/store/x.sst", "Input/output error"));
  tx->commit();
  EXPECT_TRUE(called);
  EXPECT_TRUE(first->fired());
  EXPECT_TRUE(second->fired());
}

// What cannot be read is not missing.
TEST_F(DiskFaults, WatchesOfAMissingKeyFireIfItsValueCannotBeRead) {
  auto store = open();
  const auto tx = store->begin();
  const auto watch = tx->watch("k00001");
  fill(*store, 0, 300);  // so many that the first are in a file
  fail(Operation::read, ".sst", rocksdb::IOStatus::IOError("/disk/store/x.sst", "Input/output error"));
  EXPECT_THAT(reason_of([&] { get(*store, "k00001"); }), HasSubstr(".sst"));
  tx->commit();
  EXPECT_TRUE(watch->fired());
}

TEST_F(DiskFaults, AWatchThatIsSetWhileAGroupIsWrittenFiresIfItsValueCannotBeRead) {
  auto store = open();
  fill(*store, 0, 300);
  store.reset();
  store = open();
  std::shared_ptr<Watch> watch;
  std::atomic<bool> asked = false, broken = false;
  disk_->set_fault([&](Operation operation, const std::string& file) {
    if (operation == Operation::sync && file.ends_with(".log") && !asked.exchange(true)) {
      std::thread([&] { watch = store->run([](Transaction& tx) { return tx.watch("k00100"); }); }).join();
      broken = true;
    }
    return broken && operation == Operation::read && file.ends_with(".sst")
               ? rocksdb::IOStatus::IOError(file, "Input/output error")
               : rocksdb::IOStatus::OK();
  });
  set(*store, "unrelated", "1");
  EXPECT_TRUE(watch->fired());
}

TEST_F(DiskFaults, WritersWaitForASlowDiskAndGoOn) {
  auto store = open();
  std::mutex mutex;
  std::condition_variable changed;
  bool blocked = true;
  std::atomic<int> waiting = 0;
  disk_->set_fault([&](Operation operation, const std::string& file) {
    if (operation == Operation::append && file.ends_with(".sst")) {
      ++waiting;
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return !blocked; });
    }
    return rocksdb::IOStatus::OK();
  });
  // More than the memtables hold, while none of them can be written down.
  std::atomic<int> written = 0;
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i, ++written)
        set(*store, fmt::format("w{}-{:04}", t, i), std::string(2000, 'x'));
    });
  }
  // They come to a stop: nothing is written for as long as it takes to see that.
  for (int before = -1, still = 0; still < 50;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    still = waiting > 0 && written == before ? still + 1 : 0;
    before = written;
  }
  EXPECT_LT(written, 800);
  {
    std::lock_guard lock(mutex);
    blocked = false;
  }
  changed.notify_all();
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(written, 800);
  EXPECT_EQ(store->run([](Transaction& tx) { return tx.get_range({"w", "x"}).rows.size(); }), 800u);
}

}  // namespace
}  // namespace divan::kv::embedded
