// Several nodes in one process: each with a bus, a catalog and a sequencer of its own, on one store.
#include <fmt/core.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "divan/docs/local.h"
#include "divan/docs/writer.h"
#include "divan/events/listener.h"
#include "divan/kv/conformance/engines.h"
#include "divan/kv/tuple.h"
#include "divan/updates/check.h"
#include "divan/updates/feed.h"
#include "divan/updates/observed_store.h"
#include "divan/updates/sequencer.h"

namespace divan::updates {
namespace {

using events::DatabaseEvent;
using ::testing::ElementsAre;
using testing::ObservedStore;
using testing::Operation;

constexpr auto kGenerous = std::chrono::seconds(60);

// What a listener to all databases has heard.
class Ear {
 public:
  Ear(events::Bus& bus, const Clock& clock)
      : listener_(bus, clock,
                  {.event =
                       [this](const events::Event& event) {
                         std::string text = event.kind + " " + event.database;
                         if (event.kind == "ddoc_updated" || event.kind == "index_commit")
                           text += " " + event.id;
                         add(std::move(text));
                       },
                   .lagged = [this](std::uint64_t) { add("lagged"); }}) {
    listener_.listen({.all = true});
  }

  // Waits for at least `count` events, and returns all.
  std::vector<std::string> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kGenerous, [&] { return heard_.size() >= count; });
    return heard_;
  }
  // Waits for that event; returns all before it, and forgets everything.
  std::vector<std::string> take_until(const std::string& event) {
    std::unique_lock lock(mutex_);
    const auto found = [&] { return std::find(heard_.begin(), heard_.end(), event); };
    changed_.wait_for(lock, kGenerous, [&] { return found() != heard_.end(); });
    std::vector<std::string> taken(heard_.begin(), found());
    EXPECT_NE(found(), heard_.end()) << "timed out waiting for " << event;
    heard_.clear();
    return taken;
  }

 private:
  void add(std::string text) {
    {
      std::lock_guard lock(mutex_);
      heard_.push_back(std::move(text));
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> heard_;
  events::Listener listener_;
};

struct Node {
  Node(kv::Database& the_store, const Clock& clock, const std::string& name, SequencerOptions options = {})
      : store(the_store),
        observed(store, [this](Operation operation, bool done) { observe(operation, done); }),
        catalog(bus, clock),
        sequencer(observed, catalog, clock, options, name),
        ear(bus, clock) {}

  void create(const std::string& name) {
    store.run([&](kv::Transaction& tx) { catalog.create(tx, name); });
  }
  void remove(const std::string& name) {
    store.run([&](kv::Transaction& tx) { catalog.remove(tx, name); });
  }
  void write(const std::string& name, const char* document = "{}") {
    std::vector documents{docs::parse_document(document)};
    EXPECT_FALSE(docs::bulk_edit(store, catalog, name, documents, rng).front().error);
  }
  void write_local(const std::string& name) {
    store.run([&](kv::Transaction& tx) {
      docs::write_local(tx, catalog.open(tx, name), docs::parse_document(R"({"_id":"_local/x"})"));
    });
  }
  // As an index does it.
  void change(const std::string& name, DatabaseEvent kind, const std::string& id = {}) {
    store.run([&](kv::Transaction& tx) { catalog.changed(tx, catalog.open(tx, name), kind, id); });
  }
  void observe(Operation operation, bool done) {
    if (operation == Operation::begin && broken) throw kv::Error(kv::ErrorCode::io_error);
    if (operation == Operation::watch && no_watches) throw kv::Error(kv::ErrorCode::too_many_watches);
    if (operation == Operation::read && done) ++reads;
  }

  kv::Database& store;
  // What the sequencer's and the follower's operations meet.
  std::atomic<bool> broken = false, no_watches = false;
  std::atomic<int> reads = 0;
  ObservedStore observed;
  SystemRng rng;
  events::Bus bus;
  docs::Catalog catalog;
  Sequencer sequencer;
  Ear ear;
};

// Lets the time of a manual clock pass.
class Ticker {
 public:
  Ticker(ManualClock& clock, Duration step)
      : thread_([this, &clock, step] {
          while (!stopping_) {
            clock.advance(step);
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          }
        }) {}
  ~Ticker() {
    stopping_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

class UpdatesNodes : public ::testing::TestWithParam<kv::conformance::Engine> {
 protected:
  kv::Database& store() { return engine_store->database(); }
  std::string feed() {
    std::string text;
    store().run([&](kv::Transaction& tx) {
      text.clear();
      visit_updates(tx, {}, [&](const Update& update) {
        text += update.database + ":" + update.kind + " ";
        return true;
      });
    });
    return text;
  }
  std::vector<std::string> rows_of(const std::string& part) {
    std::vector<std::string> keys;
    store().dump([&](std::string_view key, std::string_view) {
      const auto text = kv::tuple::describe(key);
      if (text.starts_with(fmt::format(R"(("updates", "{}")", part))) keys.push_back(text);
      return true;
    });
    return keys;
  }

  SystemClock clock;
  std::unique_ptr<kv::conformance::TestStore> engine_store = GetParam().make(clock, 1000);
};

// What happens on `here` is heard on `there` once, and so it is here.
void expect_all_kinds(Node& here, Node& there) {
  here.create("a");
  EXPECT_THAT(there.ear.take_until("created a"), ElementsAre());
  here.write("a");
  EXPECT_THAT(there.ear.take_until("updated a"), ElementsAre());
  here.write("a", R"({"_id":"_design/x"})");
  EXPECT_THAT(there.ear.take_until("ddoc_updated a _design/x"), ElementsAre("updated a"));
  here.write_local("a");
  EXPECT_THAT(there.ear.take_until("local_updated a"), ElementsAre());
  here.change("a", DatabaseEvent::index_commit, "_design/x");
  EXPECT_THAT(there.ear.take_until("index_commit a _design/x"), ElementsAre());
  here.remove("a");
  EXPECT_THAT(there.ear.take_until("deleted a"), ElementsAre());
  // This comes to `here` after everything else that may have come from the log.
  there.create("fence");
  EXPECT_THAT(here.ear.take_until("created fence"),
              ElementsAre("created a", "updated a", "updated a", "ddoc_updated a _design/x",
                          "local_updated a", "index_commit a _design/x", "deleted a"));
  there.remove("fence");
  EXPECT_THAT(here.ear.take_until("deleted fence"), ElementsAre());
  EXPECT_THAT(there.ear.take_until("deleted fence"), ElementsAre("created fence"));
}

TEST_P(UpdatesNodes, EveryKindOfEventReachesTheOtherNodeOnce) {
  Node a(store(), clock, "a"), b(store(), clock, "b");
  a.sequencer.start();
  b.sequencer.start();
  expect_all_kinds(a, b);
  expect_all_kinds(b, a);
}

TEST_P(UpdatesNodes, FeedsOfTheOtherNodeWake) {
  Node a(store(), clock, "a"), b(store(), clock, "b");
  a.sequencer.start();
  b.sequencer.start();
  auto subscription = b.bus.subscribe(feed_channel());
  a.create("x");
  EXPECT_TRUE(subscription.next_until(clock, clock.now() + kGenerous));
  b.ear.take_until("created x");
  a.write("x");
  EXPECT_TRUE(subscription.next_until(clock, clock.now() + kGenerous));
  EXPECT_EQ(feed(), "x:created x:updated ");
}

TEST_P(UpdatesNodes, ABurstOfDatabases) {
  constexpr int kDatabases = 1000;
  Node a(store(), clock, "a"), b(store(), clock, "b");
  a.sequencer.start();
  b.sequencer.start();
  std::multiset<std::string> expected;
  for (int i = 0; i < kDatabases; ++i) {
    a.create("db" + std::to_string(i));
    expected.insert("created db" + std::to_string(i));
  }
  auto heard = b.ear.wait_for(kDatabases);
  for (int i = 0; i < kDatabases; ++i) {
    a.change("db" + std::to_string(i), DatabaseEvent::updated);
    expected.insert("updated db" + std::to_string(i));
  }
  heard = b.ear.wait_for(2 * kDatabases);
  EXPECT_EQ(std::multiset<std::string>(heard.begin(), heard.end()), expected);
}

TEST_P(UpdatesNodes, ANodeThatIsMadeLaterBeginsAtNow) {
  Node a(store(), clock, "a");
  a.sequencer.start();
  Node other(store(), clock, "other");
  other.sequencer.start();
  a.create("x");
  a.write("x");
  other.ear.take_until("updated x");
  Node b(store(), clock, "b");
  b.sequencer.start();
  a.create("y");
  EXPECT_THAT(b.ear.take_until("created y"), ElementsAre());
}

TEST_P(UpdatesNodes, BothWriteToOneDatabaseAndBothHear) {
  Node a(store(), clock, "a"), b(store(), clock, "b");
  a.sequencer.start();
  b.sequencer.start();
  a.create("x");
  b.ear.take_until("created x");
  const auto write_often = [](Node& node) {
    for (int i = 0; i < 100; ++i) node.write("x");
  };
  std::thread other([&] { write_often(b); });
  write_often(a);
  other.join();
  // Whatever the sequencers were just doing: the last update of each is heard on the other, after its own
  // 100.
  a.ear.wait_for(1 + 100 + 1);
  b.ear.wait_for(100 + 1);
  a.create("ya");
  b.create("yb");
  const auto count = [](const std::vector<std::string>& heard) {
    return std::count(heard.begin(), heard.end(), "updated x");
  };
  EXPECT_GT(count(a.ear.take_until("created yb")), 100);
  EXPECT_GT(count(b.ear.take_until("created ya")), 100);
  a.sequencer.step();
  EXPECT_EQ(feed().find("x:updated", feed().find("x:updated") + 1), std::string::npos);
}

TEST_P(UpdatesNodes, AFollowerSurvivesErrorsOfTheStore) {
  ManualClock manual;
  Node a(store(), clock, "a"), b(store(), manual, "b");
  a.sequencer.start();
  b.sequencer.start();
  a.create("w");
  b.ear.take_until("created w");
  while (b.sequencer.stats().unseen > 0) std::this_thread::yield();
  b.broken = true;
  a.create("x");
  while (b.sequencer.stats().failures == 0) std::this_thread::yield();
  a.create("y");
  b.broken = false;
  Ticker ticker(manual, kRetryDelay);
  EXPECT_THAT(b.ear.take_until("created y"), ElementsAre("created x"));
}

TEST_P(UpdatesNodes, WithoutWatchesTheLogIsPolled) {
  ManualClock manual;
  Node a(store(), clock, "a"), b(store(), manual, "b");
  b.no_watches = true;
  a.sequencer.start();
  b.sequencer.start();
  a.create("x");
  Ticker ticker(manual, kRetryDelay);
  EXPECT_THAT(b.ear.take_until("created x"), ElementsAre());
}

TEST_P(UpdatesNodes, WhileNothingHappensNothingIsRead) {
  ManualClock manual;
  Node a(store(), manual, "a"), b(store(), manual, "b");
  a.sequencer.start();
  b.sequencer.start();
  a.create("x");
  b.ear.take_until("created x");
  a.write("x");
  b.ear.take_until("updated x");
  // What is still under way are a few reads; polling the log or the marks every five seconds would be more.
  const int before = a.reads + b.reads;
  for (int second = 0; second < 59; ++second) {
    manual.advance(std::chrono::seconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_LE(a.reads + b.reads - before, 6);
}

TEST_P(UpdatesNodes, MarksOfANodeThatDiedBecomeRows) {
  ManualClock manual;
  Node dead(store(), manual, "dead"), b(store(), manual, "b");
  dead.create("x");
  b.sequencer.start();
  b.create("fence");
  b.ear.take_until("created fence");
  dead.write("x");  // and its sequencer never comes to it
  Ticker ticker(manual, std::chrono::minutes(1));
  EXPECT_THAT(b.ear.take_until("updated x"), ElementsAre());
  EXPECT_EQ(feed(), "x:created fence:created fence:updated x:updated ");
}

TEST_P(UpdatesNodes, WithoutAFeedEventsStillReachTheOthers) {
  Node a(store(), clock, "a", {.recording = false}), b(store(), clock, "b", {.recording = false});
  a.sequencer.start();
  b.sequencer.start();
  a.create("x");
  a.write("x");
  EXPECT_THAT(b.ear.take_until("updated x"), ElementsAre("created x"));
  EXPECT_EQ(feed(), "");
}

TEST_P(UpdatesNodes, ADatabaseLeavesNoRowsOfWhatWasInIt) {
  Node a(store(), clock, "a");
  a.create("x");
  a.write("x", R"({"_id":"_design/x"})");
  a.write_local("x");
  a.change("x", DatabaseEvent::index_commit, "_design/x");
  a.sequencer.step();
  EXPECT_EQ(rows_of("place").size(), 5u);
  a.write("x");
  a.remove("x");
  EXPECT_THAT(rows_of("place"), ElementsAre(R"(("updates", "place", "x", "created", "", "a"))",
                                            R"(("updates", "place", "x", "deleted", "", "a"))",
                                            R"(("updates", "place", "x", "updated", "", "a"))"));
  EXPECT_THAT(rows_of("event").size(), 3u);
  EXPECT_THAT(rows_of("dirty"), ElementsAre());
  kv::Findings findings;
  Check check(store().begin()->read_version(), findings);
  store().dump([&](std::string_view key, std::string_view value) {
    check.row(key, value);
    return true;
  });
  EXPECT_THAT(findings.kept(), ElementsAre());
}

TEST_P(UpdatesNodes, AStoreOfOneProcessHasNoneOfThis) {
  Node a(store(), clock, "");
  a.sequencer.start();
  a.create("x");
  a.write("x", R"({"_id":"_design/x"})");
  a.write_local("x");
  a.sequencer.step();
  for (const char* part : {"event", "place", "told", "dirty"}) EXPECT_THAT(rows_of(part), ElementsAre());
}

INSTANTIATE_TEST_SUITE_P(Engines, UpdatesNodes, ::testing::ValuesIn(kv::conformance::engines()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace divan::updates
