// Many threads at once.
#include <fmt/core.h>

#include <algorithm>
#include <barrier>
#include <latch>
#include <semaphore>
#include <thread>

#include "divan/kv/conformance/conformance.h"

namespace divan::kv::conformance {
namespace {

void in_threads(int count, const std::function<void(int)>& fn) {
  std::vector<std::thread> threads;
  std::latch ready(count);
  for (int t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      ready.arrive_and_wait();
      fn(t);
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_P(Conformance, ConcurrentIncrementsAllCount) {
  constexpr int kThreads = 4, kRounds = 100;
  in_threads(kThreads, [&](int) {
    for (int i = 0; i < kRounds; ++i) {
      db.run([](Transaction& tx) {
        tx.set("n", std::to_string(std::stoi(tx.get("n").value_or("0")) + 1));
        tx.add("blind", 1);
      });
    }
  });
  EXPECT_EQ(get("n"), std::to_string(kThreads * kRounds));
  EXPECT_EQ(db.run([](Transaction& tx) { return decode_counter(tx.get("blind")); }), kThreads * kRounds);
}

TEST_P(Conformance, MoneyIsNeitherMadeNorLost) {
  constexpr int kAccounts = 8, kThreads = 4, kRounds = 150;
  const auto account = [](int i) { return "account" + std::to_string(i % kAccounts); };
  const auto balance = [](Transaction& tx, const std::string& key) { return decode_counter(tx.get(key)); };
  db.run([&](Transaction& tx) {
    for (int i = 0; i < kAccounts; ++i) tx.add(account(i), 100);
  });
  in_threads(kThreads, [&](int t) {
    for (int i = 0; i < kRounds; ++i) {
      if (t == 0) {  // an auditor
        const auto rows = db.run([](Transaction& tx) { return tx.get_range({"account", "b"}).rows; });
        std::int64_t sum = 0;
        for (const auto& row : rows) sum += decode_counter(std::string_view(row.value));
        EXPECT_EQ(sum, 100 * kAccounts);
        continue;
      }
      db.run([&](Transaction& tx) {
        const auto from = account(i * t), to = account(i * t + i + 1);
        if (balance(tx, from) < 10) return;
        tx.add(from, -10);
        tx.add(to, 10);
      });
    }
  });
  db.run([&](Transaction& tx) {
    std::int64_t sum = 0;
    for (int i = 0; i < kAccounts; ++i) {
      EXPECT_GE(balance(tx, account(i)), 0);
      sum += balance(tx, account(i));
    }
    EXPECT_EQ(sum, 100 * kAccounts);
  });
}

TEST_P(Conformance, ManyReadersReadOneVersionEach) {
  constexpr int kKeys = 50, kThreads = 6, kRounds = 100;
  const auto key = [](int i) { return fmt::format("k{:02}", i); };
  const auto write = [&](int round) {
    db.run([&](Transaction& tx) {
      for (int i = 0; i < kKeys; ++i) tx.set(key(i), std::to_string(round));
    });
  };
  write(0);
  std::vector<std::string> keys;
  for (int i = 0; i < kKeys; ++i) keys.push_back(key(i));
  in_threads(kThreads, [&](int t) {
    int newest = 0;
    for (int i = 1; i <= kRounds; ++i) {
      if (t == 0) {
        write(i);
        continue;
      }
      db.run([&](Transaction& tx) {
        std::set<std::string> values;
        for (const auto& value : tx.get_many(keys)) values.insert(value.value());
        for (const auto& row : tx.get_range({"k", "l"}).rows) values.insert(row.value);
        values.insert(*tx.get(key(i % kKeys)));
        ASSERT_EQ(values.size(), 1u);
        // And what was seen stays seen.
        ASSERT_GE(std::stoi(*values.begin()), newest);
        newest = std::stoi(*values.begin());
      });
    }
  });
}

TEST_P(Conformance, AtomicOperationsOfConcurrentCommitsBuildOnEachOther) {
  constexpr int kThreads = 8, kRounds = 100;
  in_threads(kThreads, [&](int t) {
    for (int i = 0; i < kRounds; ++i) {
      const std::string own = "own" + std::to_string(t);
      db.run([&](Transaction& tx) {
        tx.add("counter", 1);
        if (i % 3 == 0) tx.set(own, std::string(8, '\0'));
        if (i % 3 == 1) tx.clear_range(own, own + "~");
        tx.add(own, i);
        tx.atomic(AtomicOp::max, "max", std::string(1, static_cast<char>(t)));
      });
      ASSERT_EQ(db.run([&](Transaction& tx) { return decode_counter(tx.get(own)); }),
                i % 3 == 2 ? i + i - 1 : i);
    }
  });
  EXPECT_EQ(db.run([](Transaction& tx) { return decode_counter(tx.get("counter")); }), kThreads * kRounds);
  EXPECT_EQ(get("max"), std::string(1, static_cast<char>(kThreads - 1)));
}

TEST_P(Conformance, StampsOfConcurrentCommitsAreUniqueAndInOrder) {
  constexpr int kThreads = 6, kRounds = 60;
  std::array<std::vector<std::string>, kThreads> stamps;
  in_threads(kThreads, [&](int t) {
    for (int i = 0; i < kRounds; ++i) {
      const auto tx = db.begin();
      tx->set_versionstamped_key(stampable("s"), std::to_string(t));
      tx->commit();
      stamps[static_cast<std::size_t>(t)].push_back(tx->versionstamp());
    }
  });
  std::set<std::string> all;
  for (const auto& of_thread : stamps) {
    EXPECT_TRUE(std::is_sorted(of_thread.begin(), of_thread.end()));
    all.insert(of_thread.begin(), of_thread.end());
  }
  EXPECT_EQ(all.size(), std::size_t{kThreads * kRounds});
  EXPECT_EQ(db.run([](Transaction& tx) { return tx.get_range({"s", "t"}).rows.size(); }), all.size());
}

// Blind writes of all kinds to a few keys, each with a line in a log that is ordered by the stamps.
TEST_P(Conformance, ConcurrentWritesTakeEffectInTheOrderOfTheirStamps) {
  constexpr int kThreads = 8, kRounds = 60;
  static constexpr std::array<std::string_view, 5> kKinds = {"set", "clear", "clear_range", "add", "max"};
  const auto write = [](Transaction& tx, std::string_view kind, const std::string& key) {
    if (kind == "set") tx.set(key, "12345678");
    if (kind == "clear") tx.clear(key);
    if (kind == "clear_range") tx.clear_range(key, key + "~");
    if (kind == "add") tx.add(key, 258);
    if (kind == "max") tx.atomic(AtomicOp::max, key, std::string(8, '\x02'));
  };
  std::barrier together(kThreads);
  in_threads(kThreads, [&](int t) {
    for (int i = 0; i < kRounds; ++i) {
      // All threads meet at one key, and a few rounds later at the next.
      const std::string key = "k" + std::to_string(100 + i / 3);
      // More often those that read what others wrote at the same time.
      const std::string_view kind = i % 3 == 0   ? "add"
                                    : i % 3 == 1 ? "clear_range"
                                                 : kKinds[static_cast<std::size_t>(t + i / 3) % 5];
      const auto tx = db.begin();
      write(*tx, kind, key);
      tx->set_versionstamped_key(stampable("log"), std::string(kind) + " " + key);
      together.arrive_and_wait();
      tx->commit();
    }
  });
  const std::string found = stored({"k", "l"});
  const auto log = db.run([](Transaction& tx) { return tx.get_range({"log", "m"}).rows; });
  EXPECT_EQ(log.size(), std::size_t{kThreads * kRounds});
  db.run([&](Transaction& tx) {
    tx.clear_range("k", "l");
    for (const auto& [stamp, line] : log) {
      const auto space = line.find(' ');
      write(tx, line.substr(0, space), line.substr(space + 1));
    }
    EXPECT_EQ(rows(tx, {"k", "l"}), found);
  });
}

TEST_P(Conformance, CallbacksCommitWhileOthersDo) {
  constexpr int kThreads = 4, kRounds = 100;
  in_threads(kThreads, [&](int t) {
    const std::string key = "k" + std::to_string(t);
    for (int i = 0; i < kRounds; ++i) {
      const auto watch = db.run([&](Transaction& tx) { return tx.watch(key); });
      std::binary_semaphore called(0);
      watch->on_end([&] {
        db.run([](Transaction& tx) { tx.add("calls", 1); });
        called.release();
      });
      set(key, std::to_string(i));
      ASSERT_TRUE(called.try_acquire_for(std::chrono::seconds(60)));
    }
  });
  EXPECT_EQ(db.run([](Transaction& tx) { return decode_counter(tx.get("calls")); }), kThreads * kRounds);
}

TEST_P(Conformance, TheLimitOfWatchesHoldsAmongThreads) {
  constexpr int kThreads = 4;
  for (int i = 0; i < 50; ++i) {
    std::atomic<std::size_t> admitted = 0;
    std::array<std::unique_ptr<Transaction>, kThreads> open;
    std::array<std::vector<std::shared_ptr<Watch>>, kThreads> held;
    for (auto& tx : open) tx = db.begin();
    in_threads(kThreads, [&](int t) {
      const auto number = static_cast<std::size_t>(t);
      EXPECT_EQ(code_of([&] {
                  while (held[number].size() <= kMaxWatches) {
                    held[number].push_back(open[number]->watch("k"));
                    ++admitted;
                  }
                }),
                ErrorCode::too_many_watches);
      open[number]->commit();
    });
    EXPECT_EQ(admitted, kMaxWatches);
  }
}

TEST_P(Conformance, AWatchThatIsSetDuringACommitIsNotLost) {
  for (int i = 0; i < 1000; ++i) {
    // There is no watch when the commit begins.
    std::latch ready(2);
    std::thread writer([&] {
      ready.arrive_and_wait();
      set("k", std::to_string(i));
    });
    ready.arrive_and_wait();
    std::string seen;
    const auto watch = db.run([&](Transaction& tx) {
      seen = tx.get("k").value_or("");
      return tx.watch("k");
    });
    writer.join();
    if (seen == std::to_string(i)) continue;
    ASSERT_TRUE(watch->wait_until(clock_, soon())) << i;
  }
}

}  // namespace
}  // namespace divan::kv::conformance
