// Transactions on a disk with repeated power cuts: acknowledged ones are complete, others are complete or
// have no effect, and versions never decrease.
//
// Transaction N writes the rows part/N/0 ... part/N/k-1 and size/N = k, adds 1 to `count`, and a row
// log/<versionstamp> = N. Now and then it clears the parts of an earlier one and says so in gone/<that one>.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "divan/base/bytes.h"
#include "divan/kv/embedded/engine.h"
#include "divan/kv/embedded/testing/simulated_disk.h"

namespace divan::kv::embedded {
namespace {

constexpr int kThreads = 4;

std::string part_key(int number, const std::string& part) {
  return fmt::format("part/{:08}/{}", number, part);
}

// What is known of a transaction.
struct Known {
  bool acknowledged = false;
  std::string stamp;  // if acknowledged
};

class PowerCuts {
 public:
  explicit PowerCuts(std::uint64_t seed, bool durable = true) : rng_(seed), durable_(durable) {}

  // Opens the store, works until the power is cut, and checks what is left. The first rounds make the
  // directory.
  void round(std::uint64_t operations) {
    disk_->cut_after(operations);
    try {
      const auto store = open();
      work(*store);
    } catch (const std::exception&) { ASSERT_TRUE(disk_->is_cut()); }
    disk_->power_up(rng_, !durable_);
    try {
      verify();
    } catch (const std::exception& error) { FAIL() << error.what(); }
  }

  std::size_t acknowledged() const { return acknowledged_; }
  std::size_t unknown_present() const { return unknown_present_; }
  std::size_t unknown_absent() const { return unknown_absent_; }
  std::size_t lost() const { return lost_; }

 private:
  std::unique_ptr<EmbeddedDatabase> open() {
    return std::make_unique<EmbeddedDatabase>(Options{.directory = "/disk/store",
                                                      .durable = durable_,
                                                      .cache_bytes = 1 << 20,
                                                      .write_buffer_bytes = 64 << 10,
                                                      .env = &machine_},
                                              clock_, rng_);
  }

  void work(EmbeddedDatabase& store) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        SeededRng rng(rng_.next() + static_cast<std::uint64_t>(t));
        try {
          for (int i = 0; i < 200 && !disk_->is_cut(); ++i) transact(store, rng);
        } catch (const Error& error) {
          EXPECT_TRUE(disk_->is_cut()) << error.what();
          EXPECT_EQ(error.code(), ErrorCode::io_error);
        }
      });
    }
    for (auto& thread : threads) thread.join();
  }

  void transact(EmbeddedDatabase& store, Rng& rng) {
    const auto tx = store.begin();
    int number = 0;
    int old = -1;
    {
      std::lock_guard lock(mutex_);
      number = static_cast<int>(known_.size());
      known_.emplace_back();
      const auto candidate = rng.below(known_.size());
      if (rng.below(2) == 0 && known_[candidate].acknowledged) old = static_cast<int>(candidate);
    }
    const auto size = 1 + rng.below(5);
    for (std::uint64_t i = 0; i < size; ++i) {
      tx->set(part_key(number, std::to_string(i)), rng.bytes(rng.below(3000)));
    }
    tx->set(fmt::format("size/{:08}", number), std::to_string(size));
    tx->add("count", 1);
    tx->set_versionstamped_key("log/" + std::string(10, '\xff') + std::string("\4\0\0\0", 4),
                               std::to_string(number));
    if (old >= 0) {
      tx->clear_range(part_key(old, ""), part_key(old, "~"));
      tx->set(fmt::format("gone/{:08}", old), "");
      tx->get(fmt::format("size/{:08}", old));
    }
    try {
      tx->commit();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::not_committed) return;
      throw;
    }
    std::lock_guard lock(mutex_);
    auto& known = known_[static_cast<std::size_t>(number)];
    known = {true, tx->versionstamp()};
    newest_stamp_ = std::max(newest_stamp_, known.stamp);
    ++acknowledged_;
  }

  void verify() {
    const auto store = open();
    std::map<int, int> parts;
    std::map<int, int> sizes;
    std::set<int> gone;
    std::map<int, std::string> logged;
    std::int64_t count = 0;
    const Version version = store->dump([&](std::string_view key, std::string_view value) {
      const auto number = [&](std::string_view digits) { return std::stoi(std::string(digits)); };
      if (key.starts_with("part/")) ++parts[number(key.substr(5, 8))];
      if (key.starts_with("size/")) sizes[number(key.substr(5))] = number(value);
      if (key.starts_with("gone/")) gone.insert(number(key.substr(5)));
      if (key.starts_with("log/")) logged[number(value)] = std::string(key.substr(4));
      if (key == "count") count = decode_counter(value);
      return true;
    });
    ASSERT_EQ(static_cast<std::size_t>(count), sizes.size());
    ASSERT_EQ(logged.size(), sizes.size());
    std::string newest;
    for (std::size_t i = 0; i < known_.size(); ++i) {
      const int number = static_cast<int>(i);
      Known& known = known_[i];
      const bool present = sizes.contains(number);
      if (known.acknowledged && !present && !durable_) ++lost_, known.acknowledged = false;
      if (known.acknowledged) {
        ASSERT_TRUE(present) << "transaction " << number << " was acknowledged and is lost";
        ASSERT_EQ(to_hex(logged[number]), to_hex(known.stamp));
      } else if (known.stamp.empty()) {
        ++(present ? unknown_present_ : unknown_absent_);
      }
      // All of it or nothing.
      const int expected = present && !gone.contains(number) ? sizes[number] : 0;
      ASSERT_EQ(parts.contains(number) ? parts[number] : 0, expected) << "transaction " << number;
      ASSERT_EQ(logged.contains(number), present);
      if (present) newest = std::max(newest, logged[number]);
      // What was found out stays so.
      known = {present, present ? logged[number] : std::string(10, '\0')};
    }
    // The next commit's versionstamp is above all that were ever seen.
    if (!newest.empty()) { ASSERT_GE(version, static_cast<Version>(read_u64(newest))); }
    if (durable_ && !newest_stamp_.empty()) {
      ASSERT_GE(version, static_cast<Version>(read_u64(newest_stamp_)));
    }
  }

  SeededRng rng_;
  const bool durable_;
  ManualClock clock_;
  std::shared_ptr<SimulatedDisk> disk_ = std::make_shared<SimulatedDisk>();
  SimulatedMachine machine_{disk_};
  std::mutex mutex_;
  std::vector<Known> known_;
  std::string newest_stamp_;
  std::size_t acknowledged_ = 0, unknown_present_ = 0, unknown_absent_ = 0, lost_ = 0;
};

bool is_long() {
  const char* const value = std::getenv("DIVAN_LONG");
  return value != nullptr && *value == '1';
}

TEST(PowerCuts, NothingThatWasAcknowledgedIsLostAndNothingIsHalf) {
  const char* const chosen = std::getenv("DIVAN_SEED");
  const std::uint64_t first = chosen ? std::strtoull(chosen, nullptr, 10) : SystemRng().next() >> 24;
  const std::uint64_t disks = is_long() ? 250 : 12;
  std::size_t acknowledged = 0, present = 0, absent = 0;
  for (std::uint64_t i = 0; i < disks; ++i) {
    SCOPED_TRACE(fmt::format("DIVAN_SEED={}", first + i));
    PowerCuts cuts(first + i);
    SeededRng rng(first + i);
    for (int round = 0; round < 25; ++round) {
      // Some while it opens and recovers, most while it works.
      cuts.round(rng.below(3) == 0 ? rng.below(40) : rng.below(900));
      if (testing::Test::HasFatalFailure()) return;
    }
    acknowledged += cuts.acknowledged();
    present += cuts.unknown_present();
    absent += cuts.unknown_absent();
  }
  // All kinds of ends were seen.
  EXPECT_GT(acknowledged, disks * 100);
  EXPECT_GT(present, 0u);
  EXPECT_GT(absent, 0u);
}

TEST(PowerCuts, EachOperationWhileADirectoryIsMade) {
  for (std::uint64_t operations = 0; operations < 60; ++operations) {
    PowerCuts cuts(operations);
    cuts.round(operations);
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << operations;
  }
}

// An older version must refuse what this one writes, and a cut must leave one format or the other.
TEST(PowerCuts, EachOperationWhileAnOlderFormatIsRaised) {
  const std::string file = "/disk/store/FORMAT";
  SystemClock clock;
  for (std::uint64_t operations = 0;; ++operations) {
    SeededRng rng(operations);
    const auto disk = std::make_shared<SimulatedDisk>();
    SimulatedMachine machine(disk);
    const auto open = [&] {
      return std::make_unique<EmbeddedDatabase>(Options{.directory = "/disk/store", .env = &machine}, clock,
                                                rng);
    };
    open()->run([](Transaction& tx) { tx.set("a", "1"); });
    const std::string present = disk->contents(file);
    ASSERT_EQ(present, fmt::format("divan embedded store, format {}\n", kFormat));
    const std::string older = fmt::format("divan embedded store, format {}\n", kOldestFormat);
    disk->set_contents(file, older);
    disk->cut_after(operations);
    bool was_written = false;
    try {
      const auto store = open();
      store->run([](Transaction& tx) { tx.set("b", "1"); });
      was_written = true;
    } catch (const std::exception&) { ASSERT_TRUE(disk->is_cut()); }
    const bool was_cut = disk->is_cut();
    disk->power_up(rng);
    const auto left = disk->contents(file);
    ASSERT_TRUE(left == present || (left == older && !was_written)) << operations << ": " << left;
    const auto store = open();
    EXPECT_EQ(disk->contents(file), present) << operations;
    EXPECT_EQ(store->run([](Transaction& tx) { return tx.get("a"); }), "1") << operations;
    if (!was_cut) break;
  }
}

TEST(PowerCuts, RelaxedDurabilityLosesWholeTransactionsOnly) {
  std::size_t lost = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    PowerCuts cuts(seed, false);
    for (int round = 0; round < 10; ++round) {
      cuts.round(100 + seed * 20);
      ASSERT_FALSE(testing::Test::HasFatalFailure()) << seed;
    }
    lost += cuts.lost();
  }
  EXPECT_GT(lost, 0u);  // or this tests nothing
}

}  // namespace
}  // namespace divan::kv::embedded
