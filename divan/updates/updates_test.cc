#include <gtest/gtest.h>

#include "divan/base/bytes.h"
#include "divan/docs/writer.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/updates/feed.h"
#include "divan/updates/keys.h"
#include "divan/updates/sequencer.h"

namespace divan::updates {
namespace {

struct Updates : ::testing::Test {
  kv::embedded::TemporaryStore store;
  events::Bus bus;
  SystemClock clock;
  SeededRng rng{1};
  docs::Catalog catalog{bus, clock};
  std::unique_ptr<Sequencer> sequencer = std::make_unique<Sequencer>(*store, catalog, clock);

  void create(std::string_view name) {
    store->run([&](kv::Transaction& tx) { catalog.create(tx, name); });
  }
  void remove(std::string_view name) {
    store->run([&](kv::Transaction& tx) { catalog.remove(tx, name); });
  }
  void write(std::string_view name) {
    std::vector documents{docs::parse_document("{}")};
    EXPECT_FALSE(docs::bulk_edit(*store, catalog, name, documents, rng).front().error);
  }
  std::vector<Update> rows(const kv::Versionstamp& since = {}, bool descending = false) {
    return store->run([&](kv::Transaction& tx) {
      std::vector<Update> all;
      const UpdateVisitor take = [&](const Update& update) {
        all.push_back(update);
        return true;
      };
      if (descending) {
        visit_updates_backwards(tx, since, std::nullopt, take);
      } else {
        visit_updates(tx, since, take);
      }
      return all;
    });
  }
  std::string feed(const kv::Versionstamp& since = {}, bool descending = false) {
    std::string text;
    for (const auto& row : rows(since, descending)) text += row.database + ":" + row.kind + " ";
    return text;
  }
};

TEST_F(Updates, CreateGivesCreatedAndUpdated) {
  create("a");
  EXPECT_EQ(feed(), "a:created a:updated ");
}

TEST_F(Updates, ADamagedRowStopsNoOther) {
  create("a");
  create("b");
  std::string mark = part_key("dirty");
  kv::tuple::Packer(mark).integer(0).integer(7);
  store->run([&](kv::Transaction& tx) {
    tx.set(mark, "x");
    tx.set(row_key("a", "updated"), "x");
    tx.set(row_key("b", "deleted"), "x");
  });
  write("b");
  write("a");
  EXPECT_EQ(sequencer->step(), 3u);
  EXPECT_EQ(store->run([&](kv::Transaction& tx) { return tx.get(mark); }), std::nullopt);
  // The row before cannot be found, and stays.
  EXPECT_EQ(feed(), "a:created a:updated b:created a:updated b:updated ");
  remove("b");
  EXPECT_EQ(sequencer->step(), 0u);
  EXPECT_EQ(feed(), "a:created a:updated b:created a:updated b:updated b:deleted ");
}

TEST_F(Updates, DatabasesThatAreCreatedTogetherHaveTheirRows) {
  store->run([&](kv::Transaction& tx) {
    catalog.create(tx, "a");
    catalog.create(tx, "b");
  });
  EXPECT_EQ(feed(), "a:created a:updated b:created b:updated ");
  store->run([&](kv::Transaction& tx) {
    catalog.remove(tx, "b");
    catalog.remove(tx, "a");
  });
  EXPECT_EQ(feed(), "a:created a:updated b:created b:updated b:deleted a:deleted ");
}

TEST_F(Updates, AnUpdateMovesItsRowUp) {
  create("a");
  create("b");
  const auto before = rows().back().sequence;
  write("a");
  EXPECT_EQ(feed(), "a:created a:updated b:created b:updated ");
  sequencer->step();
  EXPECT_EQ(feed(), "a:created b:created b:updated a:updated ");
  EXPECT_EQ(feed(before), "a:updated ");
  EXPECT_EQ(feed({}, true), "a:updated b:updated b:created a:created ");
  remove("b");
  EXPECT_EQ(feed(before), "a:updated b:deleted ");
  create("b");
  EXPECT_EQ(feed(), "a:created a:updated b:deleted b:created b:updated ");
}

TEST_F(Updates, ManyUpdatesGiveOneRow) {
  create("a");
  for (int i = 0; i < 100; ++i) write("a");
  sequencer->step();
  EXPECT_EQ(feed(), "a:created a:updated ");
}

TEST_F(Updates, MarksOfADeadProcessBecomeRows) {
  create("a");
  create("b");
  write("a");
  // The process ends between the commit and the row.
  sequencer.reset();
  store.reopen();
  docs::Catalog catalog_after(bus, clock);
  Sequencer after(*store, catalog_after, clock);
  after.step();
  EXPECT_EQ(feed(), "a:created b:created b:updated a:updated ");
}

TEST_F(Updates, AMarkThatIsSetWhileItIsSequencedIsNotLost) {
  create("a");
  write("a");
  auto slow = store->begin();
  EXPECT_EQ(sequence_marks(*slow, 10, {}).rows, 1u);
  write("a");
  slow->commit();
  const auto last = rows().back().sequence;
  sequencer->step();
  EXPECT_EQ(feed(last), "a:updated ");
  sequencer->step();
  EXPECT_EQ(rows().size(), 2u);
}

TEST_F(Updates, AnUpdateIsNeverShownAfterTheDeletionThatCameAfterIt) {
  create("a");
  write("a");
  remove("a");
  sequencer->step();
  EXPECT_EQ(feed(), "a:created a:updated a:deleted ");

  // The database is deleted while its mark is being turned into a row.
  create("b");
  write("b");
  auto slow = store->begin();
  EXPECT_EQ(sequence_marks(*slow, 10, {}).rows, 1u);
  remove("b");
  EXPECT_THROW(slow->commit(), kv::Error);
  sequencer->step();
  EXPECT_EQ(feed(), "a:created a:updated a:deleted b:created b:updated b:deleted ");
}

TEST_F(Updates, TheFeedsOwnDatabaseIsLeftOut) {
  create("_global_changes");
  write("_global_changes");
  sequencer->step();
  remove("_global_changes");
  EXPECT_EQ(feed(), "");
}

TEST_F(Updates, RecordingIsSwitchedOffAndOn) {
  create("a");
  write("a");
  const auto last = rows().back().sequence;
  sequencer->configure({.recording = false});
  write("a");
  create("b");
  remove("b");
  sequencer->step();
  EXPECT_EQ(feed(last), "");
  sequencer->configure({.recording = true});
  sequencer->step();
  // What was pending was dropped.
  EXPECT_EQ(feed(last), "");
  write("a");
  sequencer->step();
  EXPECT_EQ(feed(last), "a:updated ");
}

TEST(UpdatesSettings, ADelayThatIsChangedHoldsAtOnce) {
  ManualClock clock;
  kv::embedded::TemporaryStore store(&clock);
  events::Bus bus;
  SeededRng rng{1};
  docs::Catalog catalog{bus, clock};
  Sequencer sequencer(*store, catalog, clock, {.event_delay = std::chrono::hours(1)});
  store->run([&](kv::Transaction& tx) { catalog.create(tx, "a"); });
  auto subscription = bus.subscribe(feed_channel());
  const auto write = [&] {
    std::vector documents{docs::parse_document("{}")};
    EXPECT_FALSE(docs::bulk_edit(*store, catalog, "a", documents, rng).front().error);
  };
  SystemClock real;
  const auto told = [&] {
    return subscription.next_until(real, real.now() + std::chrono::seconds(60)).has_value();
  };
  write();
  sequencer.start();
  EXPECT_TRUE(told());
  // Now an hour is to pass, on a clock that stands still, before the next row.
  write();
  sequencer.configure({.event_delay = Duration(0), .write_delay = Duration(0)});
  EXPECT_TRUE(told());
}

TEST_F(Updates, TheThreadWritesRowsAndTellsTheChannel) {
  create("a");
  sequencer->start();
  auto subscription = bus.subscribe(feed_channel());
  const auto last = rows().back().sequence;
  write("a");
  ASSERT_TRUE(subscription.next_until(clock, clock.now() + std::chrono::seconds(60)));
  EXPECT_EQ(feed(last), "a:updated ");
}

TEST_F(Updates, AFeedReaderThatRemembersItsPositionMissesNothing) {
  constexpr int kWriters = 3, kWrites = 40;
  for (int w = 0; w < kWriters; ++w) create("db" + std::to_string(w));
  sequencer->start();
  std::atomic<int> writing = kWriters;
  std::vector<std::thread> writers;
  std::array<std::atomic<std::int64_t>, kWriters> written{};
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      for (int i = 0; i < kWrites; ++i) {
        auto tx = store->begin();
        docs::Writer writer(*tx, catalog.open(*tx, "db" + std::to_string(w)));
        auto document = docs::parse_document("{}");
        document.id = rng.uuid();
        writer.edit(document);
        writer.finish();
        tx->commit();
        written[w] = tx->committed_version();
      }
      --writing;
    });
  }
  // For each database the last row that the reader saw must come after the database's last write.
  kv::Versionstamp position;
  std::map<std::string, kv::Versionstamp> seen;
  const auto read_on = [&] {
    for (const auto& row : rows(position)) {
      EXPECT_LT(position, row.sequence);
      seen[row.database] = position = row.sequence;
    }
  };
  while (writing > 0) read_on();
  for (auto& writer : writers) writer.join();
  sequencer->step();
  read_on();
  for (int w = 0; w < kWriters; ++w) {
    std::string version;
    append_u64(version, static_cast<std::uint64_t>(written[w].load()));
    EXPECT_GT(seen["db" + std::to_string(w)].bytes(), version);
  }
}

}  // namespace
}  // namespace divan::updates
