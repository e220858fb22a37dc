// What the tests of failing and damaged disks share.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "divan/kv/embedded/engine.h"
#include "divan/kv/embedded/testing/simulated_disk.h"

namespace divan::kv::embedded {

using Operation = SimulatedDisk::Operation;

/// A store on a disk of its own, small enough that some hundred rows are several files.
class OnSimulatedDisk : public testing::Test {
 protected:
  std::unique_ptr<EmbeddedDatabase> open() { return open(machine_); }
  std::unique_ptr<EmbeddedDatabase> open(rocksdb::Env& machine) {
    return std::make_unique<EmbeddedDatabase>(
        Options{
            .directory = "/disk/store", .cache_bytes = 0, .write_buffer_bytes = 64 << 10, .env = &machine},
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
    } catch (const divan::Error& error) { return error.reason(); } catch (const Error& error) {
      return error.reason();
    }
    return "no error";
  }
  // As many rows as fill some files.
  static void fill(Database& store, int from, int to) {
    for (int i = from; i < to; ++i)
      set(store, fmt::format("k{:05}", i), std::string(1000, static_cast<char>('a' + i % 26)));
  }
  // Another disk with the same files.
  static std::shared_ptr<SimulatedDisk> copy(const SimulatedDisk& disk) {
    auto other = std::make_shared<SimulatedDisk>();
    for (const auto& file : disk.files("")) {
      std::unique_ptr<rocksdb::FSWritableFile> made;
      EXPECT_TRUE(other->NewWritableFile(file, {}, &made, nullptr).ok());
      other->set_contents(file, disk.contents(file));
    }
    return other;
  }
  static void flip(SimulatedDisk& disk, const std::string& file, std::size_t at) {
    auto data = disk.contents(file);
    data.at(at) = static_cast<char>(data.at(at) ^ 0x40);
    disk.set_contents(file, std::move(data));
  }
  std::shared_ptr<SimulatedDisk> damaged_copy(const std::string& file, std::size_t at) const {
    auto disk = copy(*disk_);
    flip(*disk, file, at);
    return disk;
  }

  SystemClock clock_;
  SystemRng rng_;
  std::shared_ptr<SimulatedDisk> disk_ = std::make_shared<SimulatedDisk>();
  SimulatedMachine machine_{disk_};
};

}  // namespace divan::kv::embedded
