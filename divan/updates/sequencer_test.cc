#include "divan/updates/sequencer.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

#include "divan/base/log.h"
#include "divan/docs/writer.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/updates/feed.h"
#include "divan/updates/observed_store.h"

namespace divan::updates {
namespace {

using std::chrono::milliseconds;
using testing::ObservedStore;
using testing::Operation;

// A sequencer with its thread, whose time stands still unless the test lets it pass, and whose store can
// fail.
struct UpdatesSequencer : ::testing::Test {
  ManualClock clock;
  SystemClock real;
  kv::embedded::TemporaryStore store;
  events::Bus bus;
  SystemRng rng;
  docs::Catalog catalog{bus, clock};
  std::function<void(Operation, bool)> fault;  // of the sequencer's operations
  std::atomic<bool> faulty = false;
  ObservedStore observed{*store, [this](Operation operation, bool done) {
                           if (faulty) fault(operation, done);
                         }};
  Sequencer sequencer{observed, catalog, clock};
  events::Subscription feed_events = bus.subscribe(feed_channel());

  void create(const std::string& name) {
    store->run([&](kv::Transaction& tx) { catalog.create(tx, name); });
  }
  void update(const std::string& name) {
    store->run([&](kv::Transaction& tx) {
      catalog.changed(tx, catalog.open(tx, name), events::DatabaseEvent::updated);
    });
  }
  kv::Versionstamp last() {
    return store->run([](kv::Transaction& tx) { return last_update(tx); });
  }
  std::string feed_after(const kv::Versionstamp& position) {
    std::string text;
    store->run([&](kv::Transaction& tx) {
      text.clear();
      visit_updates(tx, position, [&](const Update& update) {
        text += update.database + ":" + update.kind + " ";
        return true;
      });
    });
    return text;
  }
  bool gets_event() {
    return feed_events.next_until(real, real.now() + std::chrono::seconds(60)).has_value();
  }
  template <class Condition>
  void wait_for(Condition&& condition) {
    for (int i = 0; i < 60'000 && !condition(); ++i) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_TRUE(condition());
  }
  // Lets time pass until then. (When the thread begins to wait is not known: a single step might come first.)
  template <class Condition>
  void pass_until(Condition&& condition) {
    for (int i = 0; i < 60'000; ++i) {
      if (condition()) return;
      clock.advance(milliseconds(50));
      std::this_thread::sleep_for(milliseconds(1));
    }
    FAIL() << "timed out";
  }
  // Starts the thread, and waits until it has read the marks of earlier processes.
  void start() {
    sequencer.start();
    wait_for([&] { return sequencer.stats().transactions > 0 && sequencer.stats().unseen == 0; });
    while (feed_events.try_next()) {}
  }
};

TEST(UpdatesPause, GrowsWithTheDatabasesOfABatch) {
  const SequencerOptions options{.event_delay = milliseconds(24), .write_delay = milliseconds(8)};
  EXPECT_EQ(pause_after(0, milliseconds(1), options), Duration(0));
  EXPECT_EQ(pause_after(1, {}, options), milliseconds(1));
  EXPECT_EQ(pause_after(16, {}, options), milliseconds(16));
  EXPECT_EQ(pause_after(32, {}, options), milliseconds(32));
  EXPECT_EQ(pause_after(500, {}, options), milliseconds(32));
  // With the time that the batch took.
  EXPECT_EQ(pause_after(1, milliseconds(1), options), milliseconds(19));
  EXPECT_EQ(pause_after(30, milliseconds(1), options), milliseconds(30));
  EXPECT_EQ(pause_after(1, milliseconds(20), options), milliseconds(32));
  EXPECT_EQ(pause_after(500, milliseconds(20), {.event_delay = {}, .write_delay = {}}), Duration(0));
}

// "A quiet server has the row within milliseconds": here no time passes at all.
TEST_F(UpdatesSequencer, AnUpdateAfterAQuietWhileDoesNotWait) {
  create("a");
  start();
  update("a");
  EXPECT_TRUE(gets_event());
  const auto position = last();
  update("a");
  pass_until([&] { return feed_events.try_next().has_value(); });
  EXPECT_EQ(feed_after(position), "a:updated ");
}

// Case 5, at the worst moments: while marks are being dropped, recording is switched on again and something
// is written. The transaction that drops has its version by then.
TEST_F(UpdatesSequencer, WhatComesAfterRecordingIsOnAgainIsNotDropped) {
  create("a");
  for (const auto moment : {Operation::begin, Operation::read, Operation::commit}) {
    update("a");
    sequencer.configure({.recording = false});
    const auto position = last();
    fault = [&](Operation operation, bool done) {
      if (operation != moment || done) return;
      faulty = false;
      sequencer.configure({.recording = true});
      update("a");
    };
    faulty = true;
    sequencer.step();
    EXPECT_FALSE(faulty);
    sequencer.step();
    EXPECT_EQ(feed_after(position), "a:updated ");
  }
}

// Case 3: 1,000 updates in a window give one row, and are gathered in one transaction.
TEST_F(UpdatesSequencer, UpdatesOfManyDatabasesAreGathered) {
  for (std::size_t i = 0; i < kFullBatch; ++i) create("db" + std::to_string(i));
  for (std::size_t i = 0; i < kFullBatch; ++i) update("db" + std::to_string(i));
  sequencer.start();
  wait_for([&] { return sequencer.stats().rows == 3 * kFullBatch; });
  while (feed_events.try_next()) {}
  const auto before = sequencer.stats();
  const auto position = last();
  for (int i = 0; i < 1000; ++i) update("db7");
  EXPECT_EQ(sequencer.stats().unseen, 1000u);
  pass_until([&] { return feed_events.try_next().has_value(); });
  EXPECT_EQ(sequencer.stats().transactions - before.transactions, 1u);
  EXPECT_EQ(sequencer.stats().rows - before.rows, 1u);
  EXPECT_EQ(feed_after(position), "db7:updated ");
}

// Case 6: delays changed live.
TEST_F(UpdatesSequencer, AShorterDelayHoldsForWhatWaitsAlready) {
  sequencer.configure({.event_delay = std::chrono::hours(1), .write_delay = std::chrono::hours(1)});
  create("a");
  start();
  update("a");
  EXPECT_TRUE(gets_event());
  update("a");
  EXPECT_GE(sequencer.stats().unseen, 1u);  // 2 if the event was of the creation
  sequencer.configure({.event_delay = {}, .write_delay = {}});
  EXPECT_TRUE(gets_event());
}

// Faults: a failed write is kept and retried, and whatever it is that was thrown ends no thread.
TEST_F(UpdatesSequencer, WhatCouldNotBeWrittenIsWrittenLater) {
  create("a");
  start();
  const std::vector<std::function<void(Operation, bool)>> faults = {
      [](Operation operation, bool done) {
        if (operation == Operation::commit && !done) throw kv::Error(kv::ErrorCode::io_error);
      },
      [](Operation operation, bool) {
        if (operation == Operation::begin) throw kv::Error(kv::ErrorCode::io_error);
      },
      [](Operation operation, bool) {
        if (operation == Operation::read) throw std::runtime_error("no error of ours");
      },
      [](Operation operation, bool) {
        if (operation == Operation::write) throw 7;
      }};
  for (std::size_t i = 0; i < faults.size(); ++i) {
    SCOPED_TRACE(i);
    const auto position = last();
    fault = faults[i];
    faulty = true;
    const auto failures = sequencer.stats().failures;
    update("a");
    // The first fault comes when a mark was found, the others before.
    pass_until([&] {
      return sequencer.stats().failures > failures && sequencer.stats().pending == (i == 0 ? 1u : 0u);
    });
    faulty = false;
    pass_until([&] { return !feed_after(position).empty() && sequencer.stats().pending == 0; });
    EXPECT_EQ(feed_after(position), "a:updated ");
  }
}

TEST(UpdatesFailures, AreLoggedFewerAndFewerTimes) {
  kv::embedded::TemporaryDirectory directory;
  const std::string path = directory.path() + "/log";
  log::configure(log::Level::info, path);
  Failures failures("Nothing works");
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(failures.run([] { throw std::runtime_error("why"); }));
  EXPECT_TRUE(failures.run([] {}));
  EXPECT_TRUE(failures.run([] {}));
  EXPECT_EQ(failures.total(), 1000u);
  log::configure(log::Level::info);
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 11u);  // of the failures 1, 2, 4 ... 512, and of the end
  EXPECT_THAT(lines.front(), ::testing::HasSubstr("Nothing works; this is tried again: why"));
  EXPECT_THAT(lines.back(), ::testing::HasSubstr("after 1000 failures"));
}

// The metrics are these numbers.
TEST_F(UpdatesSequencer, WhatItCountsIsSo) {
  create("a");
  create("b");
  EXPECT_EQ(sequencer.stats().rows, 4u);
  sequencer.step();  // there may be marks of earlier processes: there are none
  EXPECT_EQ(sequencer.stats().transactions, 1u);
  EXPECT_EQ(sequencer.stats().unseen, 0u);
  for (int i = 0; i < 5; ++i) update("a");
  update("b");
  EXPECT_EQ(sequencer.stats().unseen, 6u);
  EXPECT_EQ(sequencer.step(), 2u);
  EXPECT_EQ(sequencer.stats().unseen, 0u);
  EXPECT_EQ(sequencer.stats().rows, 6u);
  EXPECT_EQ(sequencer.stats().transactions, 2u);
  store->run([&](kv::Transaction& tx) { catalog.remove(tx, "b"); });
  EXPECT_EQ(sequencer.stats().rows, 7u);
  // A deletion while the mark is being turned into a row: the transaction is tried again.
  create("c");
  update("c");
  fault = [&](Operation operation, bool done) {
    if (operation != Operation::commit || done) return;
    faulty = false;
    store->run([&](kv::Transaction& tx) { catalog.remove(tx, "c"); });
  };
  faulty = true;
  EXPECT_EQ(sequencer.step(), 0u);
  EXPECT_EQ(sequencer.stats().conflicts, 1u);
  EXPECT_EQ(sequencer.stats().transactions, 4u);
  EXPECT_EQ(sequencer.stats().rows, 10u);
  EXPECT_EQ(sequencer.stats().failures, 0u);
}

TEST_F(UpdatesSequencer, MoreMarksThanATransactionTakes) {
  constexpr std::size_t kDatabases = 1200;
  for (std::size_t i = 0; i < kDatabases; ++i) create("db" + std::to_string(i));
  const auto position = last();
  for (std::size_t i = 0; i < kDatabases; ++i) update("db" + std::to_string(i));
  EXPECT_EQ(sequencer.step(), kDatabases);
  const std::string feed = feed_after(position);
  EXPECT_EQ(std::count(feed.begin(), feed.end(), ' '), static_cast<std::ptrdiff_t>(kDatabases));
}

}  // namespace
}  // namespace divan::updates
