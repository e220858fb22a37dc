// Threads that are really concurrent on the embedded engine; the checker; and the checker's own tests.
#include "divan/kv/model/history.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "divan/base/bytes.h"
#include "divan/kv/embedded/temporary_store.h"

namespace divan::kv::model {
namespace {

// What `threads` threads do to a store, `rounds` transactions each.
std::vector<Transacted> run_threads(Database& database, std::uint64_t seed, int threads, int rounds) {
  std::atomic<std::uint64_t> moments = 1;
  std::mutex mutex;
  std::vector<Transacted> history;
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      SeededRng rng(seed * 64 + static_cast<std::uint64_t>(t));
      for (int i = 0; i < rounds; ++i) {
        Transacted done;
        done.began = moments++;
        const auto tx = database.begin();
        done.read_version = tx->read_version();
        for (auto steps = 1 + rng.below(6); steps > 0; --steps) {
          const auto operation = random_operation(rng, {.stamps = false});
          done.steps.push_back({operation, perform(*tx, operation)});
        }
        if (commit(*tx) != "committed") continue;
        done.ended = moments++;
        if (!tx->read_only()) {
          done.version = tx->committed_version();
          done.order = read_u16(tx->versionstamp().substr(8));
        }
        std::lock_guard lock(mutex);
        history.push_back(std::move(done));
      }
    });
  }
  for (auto& thread : running) thread.join();
  return history;
}

TEST(KvModel, ConcurrentHistoriesAreStrictlySerialisable) {
  const char* const is_long = std::getenv("DIVAN_LONG");
  const int histories = is_long != nullptr && *is_long == '1' ? 2'000 : 60;
  const std::uint64_t first = SystemRng().next() >> 24;
  std::size_t written = 0, shared = 0;
  for (int i = 0; i < histories; ++i) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    embedded::TemporaryStore store;
    const auto history = run_threads(*store, seed, 6, 40);
    const auto anomaly = find_anomaly(history, contents(*store));
    ASSERT_FALSE(anomaly) << "seed " << seed << ": " << *anomaly;
    for (const auto& transacted : history) {
      written += transacted.version.has_value();
      shared += transacted.order > 0;
    }
  }
  // Groups of several commits happened, or nothing was seen of them.
  EXPECT_GT(written, static_cast<std::size_t>(histories) * 50);
  EXPECT_GT(shared, 0u);
}

// Histories by hand.

Operation read_of(const std::string& key) {
  Operation operation;
  operation.kind = Operation::Kind::get;
  operation.begin.key = key;
  return operation;
}
Operation write_of(const std::string& key, const std::string& value) {
  Operation operation;
  operation.kind = Operation::Kind::set;
  operation.begin.key = key;
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

TEST(KvModel, TheCheckerRefusesWritesThatAreNotThere) {
  EXPECT_NE(find_anomaly({beginning()}, holding("1", "2")), std::nullopt);
}

}  // namespace
}  // namespace divan::kv::model
