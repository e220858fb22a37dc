// Concurrent threads on the embedded engine, whose histories are checked; and the tests of the checker.
#include "divan/kv/model/history.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "divan/base/bytes.h"
#include "divan/kv/embedded/engine.h"
#include "divan/kv/embedded/testing/simulated_disk.h"
#include "divan/kv/reference/reference.h"
#include "divan/kv/stamping.h"

namespace divan::kv::model {
namespace {

// A watch, and the outcome of its transaction.
struct Watched {
  std::string key;
  std::optional<std::string> seen;
  std::shared_ptr<Watch> watch;
  bool committed = false;
};

struct Outcome {
  std::vector<Transacted> history;
  std::vector<Watched> watches;
  std::vector<std::string> unexpected;
};

constexpr int kThreads = 6, kRounds = 40;

// What the threads share.
struct Scene {
  Database& database;
  std::atomic<std::uint64_t> moments = 1;
  std::mutex mutex;
  Outcome outcome;
};

// Does one random transaction.
void transact(Scene& scene, Rng& rng) {
  Transacted done;
  std::optional<Watched> watched;
  done.began = scene.moments++;
  const auto tx = scene.database.begin();
  done.read_version = tx->read_version();
  for (auto steps = 1 + rng.below(6); steps > 0; --steps) {
    const auto operation = random_operation(rng);
    done.steps.push_back({operation, perform(*tx, operation)});
    if (rng.below(8) == 0) std::this_thread::yield();
    if (rng.below(16) != 0) continue;
    answer_of([&] {
      const auto key = random_key(rng);
      watched = Watched{key, tx->get(key, Isolation::snapshot), tx->watch(key)};
      return std::string();
    });
  }
  const auto answer = commit(*tx);
  done.ended = scene.moments++;
  if (answer == "committed" && !tx->read_only()) {
    done.version = tx->committed_version();
    done.order = read_u16(tx->versionstamp().substr(8));
  }
  std::lock_guard lock(scene.mutex);
  if (watched) {
    watched->committed = answer == "committed";
    scene.outcome.watches.push_back(std::move(*watched));
  }
  scene.outcome.history.push_back(std::move(done));
  if (answer != "committed" && answer != "not_committed") scene.outcome.unexpected.push_back(answer);
}

// What threads do to a store.
Outcome run_threads(Database& database, std::uint64_t seed) {
  Scene scene{database};
  std::vector<std::thread> running;
  for (int t = 0; t < kThreads; ++t) {
    running.emplace_back([&, t] {
      SeededRng rng(seed * kThreads + static_cast<std::uint64_t>(t));
      for (int i = 0; i < kRounds; ++i) transact(scene, rng);
    });
  }
  for (auto& thread : running) thread.join();
  return std::move(scene.outcome);
}

// Checks that no watch missed a change, and that the watches of transactions that were not committed ended.
std::optional<std::string> find_wrong_watch(Database& database, const std::vector<Watched>& watches) {
  // Watches fire after their commit is acknowledged, and before the next one is.
  database.run([](Transaction& tx) { tx.add_write_conflict({"a", "b"}); });
  const auto tx = database.begin();
  for (const auto& [key, seen, watch, committed] : watches) {
    if (watch->cancelled() == committed) return "a watch was cancelled, or not, against its transaction";
    const auto now = tx->get(key);
    if (committed && now != seen && !watch->fired()) {
      return fmt::format("a watch saw {} under {} and did not fire at {}", shown(seen), to_hex(key),
                         shown(now));
    }
  }
  return std::nullopt;
}

// What is wrong with a history of this database from this seed.
std::optional<std::string> find_fault(Database& database, std::uint64_t seed, std::size_t& written,
                                      std::size_t& shared) {
  const auto outcome = run_threads(database, seed);
  for (const auto& transacted : outcome.history) {
    written += transacted.version.has_value();
    shared += transacted.order > 0;
  }
  if (!outcome.unexpected.empty()) return "a commit failed: " + outcome.unexpected.front();
  if (auto anomaly = find_anomaly(outcome.history, contents(database))) return anomaly;
  return find_wrong_watch(database, outcome.watches);
}

std::string how_to_repeat(std::uint64_t seed) {
  return fmt::format("DIVAN_SEED={} does the same transactions again, as the machine orders them.\n", seed);
}

// An embedded store whose disk takes so long to sync that the next commits gather meanwhile: groups are
// large.
class SlowStore {
 public:
  SlowStore() {
    disk_->set_fault([](Disk::Operation operation, const std::string&) {
      if (operation == Disk::Operation::sync) std::this_thread::sleep_for(std::chrono::microseconds(100));
      return rocksdb::IOStatus::OK();
    });
  }
  Database& operator*() { return database_; }

 private:
  using Disk = embedded::SimulatedDisk;

  std::shared_ptr<Disk> disk_ = std::make_shared<Disk>();
  embedded::SimulatedMachine machine_{disk_};
  SystemClock clock_;
  SystemRng rng_;
  embedded::EmbeddedDatabase database_{
      {.directory = "/store", .durable = true, .cache_bytes = 8 << 20, .least_passed = 1, .env = &machine_},
      clock_,
      rng_};
};

TEST(KvModel, ConcurrentHistoriesAreStrictlySerialisable) {
  const auto range = seeds(100, 2'000, 200);
  std::size_t written = 0, shared = 0;
  for (std::uint64_t i = 0; i < range.count; ++i) {
    SlowStore store;
    const auto fault = find_fault(*store, range.at(i), written, shared);
    ASSERT_FALSE(fault) << how_to_repeat(range.at(i)) << *fault;
  }
  // Groups of several commits happened, or nothing was seen of them.
  EXPECT_GT(written, range.count * 50);
  EXPECT_GT(shared, range.count * 10);
}

TEST(KvModel, TheReferenceIsStrictlySerialisableItself) {
  const auto range = seeds(50, 1'000, 200);
  std::size_t written = 0, shared = 0;
  for (std::uint64_t i = 0; i < range.count; ++i) {
    SystemClock clock;
    SystemRng rng;
    reference::ReferenceDatabase database(clock, rng, {.version_step = 3});
    const auto fault = find_fault(database, range.at(i), written, shared);
    ASSERT_FALSE(fault) << how_to_repeat(range.at(i)) << *fault;
  }
  EXPECT_GT(written, range.count * 50);
}

// Histories by hand.

Operation read_of(const std::string& key) {
  Operation operation;
  operation.kind = Operation::Kind::get;
  operation.begin = key;
  return operation;
}
Operation write_of(const std::string& key, const std::string& value) {
  Operation operation;
  operation.kind = Operation::Kind::set;
  operation.begin = key;
  operation.value = value;
  return operation;
}
const std::string kOne = "'" + to_hex("1") + "'", kTwo = "'" + to_hex("2") + "'";

// A transaction that sets x and y to 1.
Transacted beginning() {
  return {{{write_of("x", "1"), "done"}, {write_of("y", "1"), "done"}}, 0, 1, 0, 1, 2};
}
std::string holding(const std::string& x, const std::string& y) {
  return to_hex("x") + "=" + to_hex(x) + " " + to_hex("y") + "=" + to_hex(y) + " ";
}

TEST(KvModel, TheCheckerTakesASerialHistory) {
  EXPECT_EQ(find_anomaly({beginning(),
                          {{{read_of("x"), kOne}, {write_of("y", "2"), "done"}}, 1, 2, 0, 3, 6},
                          {{{read_of("y"), kOne}}, 1, std::nullopt, 0, 4, 5}},
                         holding("1", "2")),
            std::nullopt);
}

TEST(KvModel, TheCheckerRefusesWriteSkew) {
  EXPECT_NE(find_anomaly({beginning(),
                          {{{read_of("x"), kOne}, {write_of("y", "2"), "done"}}, 1, 2, 0, 3, 5},
                          {{{read_of("y"), kOne}, {write_of("x", "2"), "done"}}, 1, 2, 1, 4, 6}},
                         holding("2", "2")),
            std::nullopt);
}

TEST(KvModel, TheCheckerRefusesALostUpdate) {
  EXPECT_NE(find_anomaly({beginning(),
                          {{{read_of("x"), kOne}, {write_of("x", "2"), "done"}}, 1, 2, 0, 3, 5},
                          {{{read_of("x"), kOne}, {write_of("x", "2"), "done"}}, 1, 3, 0, 4, 6}},
                         holding("2", "1")),
            std::nullopt);
}

TEST(KvModel, TheCheckerRefusesAStaleRead) {
  const Transacted update = {{{write_of("x", "2"), "done"}}, 1, 2, 0, 3, 4};
  const Transacted reader = {{{read_of("x"), kOne}}, 1, std::nullopt, 0, 5, 6};
  EXPECT_NE(find_anomaly({beginning(), update, reader}, holding("2", "1")), std::nullopt);
  // Begun before, it may.
  Transacted early = reader;
  early.began = 3;
  EXPECT_EQ(find_anomaly({beginning(), update, early}, holding("2", "1")), std::nullopt);
  // But not see half of it.
  early.steps.push_back({read_of("x"), kTwo});
  EXPECT_NE(find_anomaly({beginning(), update, early}, holding("2", "1")), std::nullopt);
}

TEST(KvModel, TheCheckerRefusesASnapshotReadOfAnotherVersion) {
  const Transacted update = {{{write_of("x", "2"), "done"}}, 1, 2, 0, 3, 6};
  Operation read = read_of("x");
  read.options.isolation = Isolation::snapshot;
  const auto reader = [&](const std::string& answer) {
    return Transacted{{{read, answer}, {write_of("y", "2"), "done"}}, 1, 2, 1, 4, 5};
  };
  EXPECT_EQ(find_anomaly({beginning(), update, reader(kOne)}, holding("2", "2")), std::nullopt);
  EXPECT_NE(find_anomaly({beginning(), update, reader(kTwo)}, holding("2", "2")), std::nullopt);
}

TEST(KvModel, TheCheckerRefusesAStaleReadOfWhatWasNotCommitted) {
  const Transacted update = {{{write_of("x", "2"), "done"}}, 1, 2, 0, 3, 6};
  const auto refused = [&](const std::string& answer) {
    return Transacted{{{read_of("x"), answer}, {write_of("y", "2"), "done"}}, 1, std::nullopt, 0, 4, 5};
  };
  EXPECT_EQ(find_anomaly({beginning(), update, refused(kOne)}, holding("2", "1")), std::nullopt);
  EXPECT_NE(find_anomaly({beginning(), update, refused(kTwo)}, holding("2", "1")), std::nullopt);
}

TEST(KvModel, TheCheckerRefusesACommitInThePast) {
  const Transacted update = {{{write_of("x", "2"), "done"}}, 1, 1, 1, 3, 4};
  EXPECT_NE(find_anomaly({beginning(), update}, holding("2", "1")), std::nullopt);
}

// What is there after two transactions of version 2 put their versionstamp into the same key's value.
std::optional<std::string> after_stamps(std::uint16_t one, std::uint16_t other, std::uint16_t left) {
  const auto stamping = [](std::uint16_t order) {
    Operation operation = write_of("x", std::string(14, '\0'));
    operation.kind = Operation::Kind::stamped_value;
    Transacted transacted = {{{operation, "done"}, {read_of("x"), "accessed_unreadable"}}, 1, 2, order, 3, 4};
    return transacted;
  };
  return find_anomaly({beginning(), stamping(one), stamping(other)},
                      holding(versionstamp_bytes(2, left), "1"));
}

TEST(KvModel, TheCheckerKnowsVersionstamps) {
  EXPECT_EQ(after_stamps(0, 1, 1), std::nullopt);
  EXPECT_EQ(after_stamps(1, 0, 1), std::nullopt);
  EXPECT_NE(after_stamps(0, 1, 0), std::nullopt);
  EXPECT_NE(after_stamps(1, 1, 1), std::nullopt);
}

TEST(KvModel, TheCheckerRefusesAReadThatWasRefusedForNothing) {
  EXPECT_NE(find_anomaly({beginning(), {{{read_of("x"), "accessed_unreadable"}}, 1, std::nullopt, 0, 3, 4}},
                         holding("1", "1")),
            std::nullopt);
}

TEST(KvModel, TheCheckerRefusesWritesThatAreNotThere) {
  EXPECT_NE(find_anomaly({beginning()}, holding("1", "2")), std::nullopt);
}

}  // namespace
}  // namespace divan::kv::model
