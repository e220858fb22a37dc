// Damaged and missing files: clear errors that name the file, and never wrong or missing data without one.
#include <fmt/core.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <future>

#include "divan/kv/embedded/testing/disk_fixture.h"

namespace divan::kv::embedded {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Damage : public OnSimulatedDisk {
 protected:
  static std::string manifest_of(const SimulatedDisk& disk) {
    const auto current = disk.contents("/disk/store/CURRENT");
    return "/disk/store/" + current.substr(0, current.size() - 1);
  }
  // Which of fill()'s rows are there.
  static std::vector<int> rows(Database& store) {
    std::vector<int> found;
    store.dump([&](std::string_view key, std::string_view) {
      found.push_back(std::stoi(std::string(key.substr(1))));
      return true;
    });
    return found;
  }
  static std::vector<int> numbers(int from, int to) {
    std::vector<int> numbers;
    for (int i = from; i < to; ++i) numbers.push_back(i);
    return numbers;
  }

  // A store whose memory is full and not written down yet, so that it needs two logs.
  struct TwoLogs {
    std::shared_ptr<SimulatedDisk> disk;
    std::vector<std::string> logs;
    std::size_t last_of_first = 0;  // where the last record of the first log begins
    int written = 0;
  };
  TwoLogs two_logs();
};

Damage::TwoLogs Damage::two_logs() {
  auto store = open();
  std::promise<void> go_on;
  const auto may_go_on = go_on.get_future().share();
  disk_->set_fault([=](Operation operation, const std::string& file) {
    if (operation == Operation::append && file.ends_with(".sst")) may_go_on.wait();
    return rocksdb::IOStatus::OK();
  });
  TwoLogs two;
  const auto first = disk_->files(".log").back();
  while (two.written < 90) {
    const std::size_t before = disk_->contents(first).size();
    fill(*store, two.written, two.written + 1);
    ++two.written;
    if (disk_->contents(first).size() > before) two.last_of_first = before;
  }
  two.disk = copy(*disk_);
  two.logs = two.disk->files(".log");
  EXPECT_EQ(two.logs.size(), 2u);
  go_on.set_value();
  return two;
}

// Whichever byte of a table is wrong: every row has its value, or there is an error that names the file.
TEST_F(Damage, ADamagedTableIsFoundWhenItIsRead) {
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

TEST_F(Damage, AMissingFileIsFoundAtOpening) {
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

TEST_F(Damage, AMissingLogIsFoundAtOpening) {
  {
    auto store = open();
    fill(*store, 0, 10);
  }
  for (const auto& log : disk_->files(".log")) disk_->remove(log);
  EXPECT_THAT(reason_of([&] { open(); }), AllOf(HasSubstr("/disk/store"), HasSubstr(".log is missing")));
}

// Whichever byte of the manifest is wrong: every row is there, or it does not open.
TEST_F(Damage, ADamagedManifestIsFoundAtOpening) {
  {
    auto store = open();
    fill(*store, 0, 300);
  }
  open();
  const auto manifest = manifest_of(*disk_);
  const auto size = disk_->contents(manifest).size();
  std::size_t refused = 0;
  for (std::size_t at = 0; at < size; at += 1 + size / 200) {
    SimulatedMachine machine(damaged_copy(manifest, at));
    const auto reason = reason_of([&] { EXPECT_EQ(rows(*open(machine)), numbers(0, 300)) << at; });
    if (reason == "no error") continue;
    ++refused;
    EXPECT_THAT(reason, HasSubstr("/disk/store")) << at;
  }
  EXPECT_GT(refused, 100u);
}

// The power goes while a flush is written into the manifest: its record has sectors of zeros.
TEST_F(Damage, ATornRecordAtTheEndOfTheManifestIsCutOff) {
  std::shared_ptr<SimulatedDisk> disk;
  std::size_t before = 0;
  std::atomic<std::size_t> written = 0;
  std::size_t written_then = 0;
  {
    auto store = open();
    before = disk_->contents(manifest_of(*disk_)).size();
    std::atomic<bool> taken = false;
    disk_->set_fault([&](Operation operation, const std::string& file) {
      if (operation == Operation::sync && file.find("MANIFEST") != std::string::npos &&
          !taken.exchange(true)) {
        written_then = written;
        disk = copy(*disk_);
      }
      return rocksdb::IOStatus::OK();
    });
    // A flush takes place in the background.
    for (; written < 100 || (!taken && written < 90'000); ++written) {
      fill(*store, static_cast<int>(written), static_cast<int>(written) + 1);
    }
  }
  ASSERT_TRUE(disk);
  const auto manifest = manifest_of(*disk);
  auto contents = disk->contents(manifest);
  ASSERT_GT(contents.size(), before + 20);
  std::fill(contents.begin() + static_cast<std::ptrdiff_t>(before) + 10, contents.end(), '\0');
  disk->set_contents(manifest, contents);
  SimulatedMachine machine(disk);
  const auto left = rows(*open(machine));
  EXPECT_GE(left.size(), written_then);
  EXPECT_EQ(left, numbers(0, static_cast<int>(left.size())));
}

// Whichever byte of the log is wrong: all rows are there, or those of the last commit are not (it cannot be
// told from one that the power cut), or it does not open.
TEST_F(Damage, ADamagedLogNeverDropsWhatLiesBehindTheDamage) {
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

TEST_F(Damage, TheLogsOfAStoreGoOnFromEachOther) {
  const auto two = two_logs();
  {
    SimulatedMachine machine(copy(*two.disk));
    EXPECT_EQ(rows(*open(machine)), numbers(0, two.written));
  }
  const auto reason_with = [&](const std::function<void(SimulatedDisk&)>& damage) {
    const auto damaged = copy(*two.disk);
    damage(*damaged);
    SimulatedMachine machine(damaged);
    return reason_of([&] { open(machine); });
  };
  const auto first = two.logs[0];
  const auto second = two.logs[1];
  EXPECT_THAT(reason_with([&](auto& disk) { flip(disk, first, disk.contents(first).size() - 10); }),
              HasSubstr(second));
  EXPECT_THAT(reason_with([&](auto& disk) { disk.remove(first); }), HasSubstr(second));
  EXPECT_THAT(reason_with([&](auto& disk) {
                disk.set_contents(first, disk.contents(first).substr(0, two.last_of_first));
              }),
              HasSubstr(second));
}

// A record of a log as it would stand there.
std::string log_record(const std::string& payload) {
  const std::string checked = '\x01' + payload;  // the type: whole
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(checked.data(), checked.size());
  const std::uint32_t plain = crc.checksum();
  const std::uint32_t masked = (plain >> 15 | plain << 17) + 0xa282ead8u;
  std::string record;
  for (int i = 0; i < 4; ++i) record += static_cast<char>(masked >> (8 * i));
  return record + static_cast<char>(payload.size()) + '\0' + checked;
}

TEST_F(Damage, WhatAClientWritesIsNotTakenForWhatLiesBehindDamage) {
  std::size_t before = 0;
  {
    auto store = open();
    fill(*store, 0, 10);
    before = disk_->contents(disk_->files(".log").back()).size();
    set(*store, "last", std::string(300, 'x') + log_record("forged to be found") + std::string(1000, 'x'));
  }
  const auto log = disk_->files(".log").back();
  disk_->set_contents(log, disk_->contents(log).substr(0, before + 600));  // the power cut
  EXPECT_EQ(rows(*open()), numbers(0, 10));
}

}  // namespace
}  // namespace divan::kv::embedded
