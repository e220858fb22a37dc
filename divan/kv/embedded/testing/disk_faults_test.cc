// A disk that fails or damages files: clear errors that name the file, and never wrong or missing data
// without one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <thread>

#include "divan/kv/embedded/engine.h"
#include "divan/kv/embedded/testing/simulated_disk.h"

namespace divan::kv::embedded {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Operation = SimulatedDisk::Operation;

class DiskFaults : public testing::Test {
 protected:
  std::unique_ptr<EmbeddedDatabase> open() {
    return std::make_unique<EmbeddedDatabase>(
        Options{
            .directory = "/disk/store", .cache_bytes = 0, .write_buffer_bytes = 64 << 10, .env = &machine_},
        clock_, rng_);
  }
  static void set(Database& store, std::string_view key, std::string_view value) {
    store.run([&](Transaction& tx) { tx.set(key, value); });
  }
  static std::string get(Database& store, std::string_view key) {
    return store.run([&](Transaction& tx) { return tx.get(key).value_or("(none)"); });
  }
  static std::string reason_of(const std::function<void()>& fn) {
    try {
      fn();
    } catch (const divan::Error& error) { return error.reason(); }
    return "no error";
  }
  // As many rows as fill some files.
  static void fill(Database& store, int from, int to) {
    for (int i = from; i < to; ++i)
      set(store, fmt::format("k{:05}", i), std::string(1000, static_cast<char>('a' + i % 26)));
  }
  // Another disk with the same files, one of them with a wrong byte.
  std::shared_ptr<SimulatedDisk> damaged_copy(const std::string& damaged, std::size_t at) const {
    auto disk = std::make_shared<SimulatedDisk>();
    for (const auto& file : disk_->files("")) {
      std::unique_ptr<rocksdb::FSWritableFile> made;
      EXPECT_TRUE(disk->NewWritableFile(file, {}, &made, nullptr).ok());
      auto data = disk_->contents(file);
      if (file == damaged) data.at(at) = static_cast<char>(data.at(at) ^ 0x40);
      disk->set_contents(file, std::move(data));
    }
    return disk;
  }
  void flip(const std::string& file, std::size_t at) {
    auto data = disk_->contents(file);
    data.at(at) = static_cast<char>(data.at(at) ^ 0x40);
    disk_->set_contents(file, data);
  }
  void fail(Operation operation, const std::string& suffix, rocksdb::IOStatus with) {
    disk_->set_fault([=](Operation done, const std::string& file) {
      return done == operation && file.ends_with(suffix) ? with : rocksdb::IOStatus::OK();
    });
  }

  SystemClock clock_;
  SystemRng rng_;
  std::shared_ptr<SimulatedDisk> disk_ = std::make_shared<SimulatedDisk>();
  SimulatedMachine machine_{disk_};
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

// Whichever byte of a table is wrong: every row has its value, or there is an error that names the file.
TEST_F(DiskFaults, ADamagedTableIsFoundWhenItIsRead) {
  {
    auto store = open();
    fill(*store, 0, 100);
  }
  open();  // the log becomes a table
  const auto tables = disk_->files(".sst");
  ASSERT_FALSE(tables.empty());
  const std::size_t size = disk_->contents(tables[0]).size();
  std::size_t found = 0;
  for (std::size_t at = 7; at < size; at += size / 60) {
    SimulatedMachine machine(damaged_copy(tables[0], at));
    const auto reason = reason_of([&] {
      EmbeddedDatabase store({.directory = "/disk/store", .env = &machine}, clock_, rng_);
      for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(get(store, fmt::format("k{:05}", i)), std::string(1000, static_cast<char>('a' + i % 26)))
            << at;
      }
      EXPECT_EQ(store.run([](Transaction& tx) { return tx.get_range({"k", "l"}).rows.size(); }), 100u) << at;
    });
    if (reason == "no error") continue;
    ++found;
    EXPECT_THAT(reason, HasSubstr(tables[0])) << at;
  }
  EXPECT_GT(found, 40u);
}

TEST_F(DiskFaults, AMissingFileIsFoundAtOpening) {
  {
    auto store = open();
    fill(*store, 0, 100);
  }
  open();
  for (const std::string suffix : {".sst", "CURRENT", "FORMAT"}) {
    const auto files = disk_->files(suffix);
    ASSERT_FALSE(files.empty()) << suffix;
    const auto whole = disk_->contents(files[0]);
    disk_->remove(files[0]);
    EXPECT_THAT(reason_of([&] { open(); }), AllOf(HasSubstr("/disk/store"), HasSubstr(suffix)));
    std::unique_ptr<rocksdb::FSWritableFile> made;
    ASSERT_TRUE(disk_->NewWritableFile(files[0], {}, &made, nullptr).ok());
    disk_->set_contents(files[0], whole);
  }
  EXPECT_EQ(get(*open(), "k00001").size(), 1000u);
}

TEST_F(DiskFaults, ADamagedManifestIsFoundAtOpening) {
  {
    auto store = open();
    fill(*store, 0, 300);
  }
  open();
  const auto manifests = disk_->files("");
  const auto manifest = std::find_if(manifests.begin(), manifests.end(), [](const auto& file) {
    return file.find("MANIFEST") != std::string::npos;
  });
  ASSERT_NE(manifest, manifests.end());
  const auto whole = disk_->contents(*manifest);
  for (std::size_t at = 0; at < whole.size(); at += 1 + whole.size() / 40) {
    flip(*manifest, at);
    // Every row is there, or it does not open.
    const auto reason = reason_of([&] {
      auto store = open();
      EXPECT_EQ(store->run([](Transaction& tx) { return tx.get_range({"k", "l"}).rows.size(); }), 300u) << at;
    });
    EXPECT_THAT(reason, HasSubstr("/disk/store")) << at;
    for (const auto& file : disk_->files("")) {
      if (file.find("MANIFEST") != std::string::npos && file != *manifest) disk_->remove(file);
    }
    disk_->set_contents(*manifest, whole);
  }
}

// Whichever byte of the log is wrong: all rows are there, or those of the last commit are not (it cannot be
// told from one that the power cut), or it does not open.
TEST_F(DiskFaults, ADamagedLogNeverDropsWhatLiesBehindTheDamage) {
  constexpr int kRows = 60;
  std::size_t last_three = 0;
  {
    auto store = open();
    fill(*store, 0, 40);
    // One of several blocks.
    store->run([](Transaction& tx) { tx.set("k00040", std::string(90'000, 'x')); });
    fill(*store, 41, kRows - 3);
    last_three = disk_->contents(disk_->files(".log").back()).size();
    fill(*store, kRows - 3, kRows);
  }
  const auto logs = disk_->files(".log");
  ASSERT_FALSE(logs.empty());
  const std::string& log = logs.back();
  const std::size_t size = disk_->contents(log).size();
  // The length and the type of a record in the last block.
  std::vector<std::size_t> places = {last_three + 4, last_three + 5, last_three + 6};
  for (std::size_t at = 0; at < size; at += 1 + size / 150) places.push_back(at);
  std::size_t refused = 0;
  for (const std::size_t at : places) {
    SimulatedMachine machine(damaged_copy(log, at));
    std::size_t rows = 0;
    const auto reason = reason_of([&] {
      EmbeddedDatabase store({.directory = "/disk/store", .env = &machine}, clock_, rng_);
      rows = store.run([](Transaction& tx) { return tx.get_range({"k", "l"}).rows.size(); });
    });
    if (reason == "no error") {
      EXPECT_GE(rows, std::size_t{kRows - 1}) << at;
    } else {
      ++refused;
      EXPECT_THAT(reason, AllOf(HasSubstr(log), HasSubstr("damaged at byte"))) << at;
    }
  }
  EXPECT_GT(refused, 120u);
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
