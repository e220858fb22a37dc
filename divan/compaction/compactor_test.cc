#include "divan/compaction/compactor.h"

#include <gmock/gmock.h>

#include <thread>

#include "divan/base/json.h"
#include "divan/docs/reader.h"
#include "divan/docs/writer.h"
#include "divan/kv/embedded/temporary_store.h"

namespace divan::compaction {
namespace {

using testing::IsEmpty;

struct Compactors : testing::Test {
  ManualClock clock;
  kv::embedded::TemporaryStore store;  // on the system clock, since retries wait
  SeededRng rng{1};
  events::Bus bus;
  docs::Catalog catalog{bus, clock};
  Config config;

  void SetUp() override {
    create("db");
    create("other");
  }
  void create(const char* name) {
    store->run([&](kv::Transaction& tx) { catalog.create(tx, name); });
  }
  docs::Database open(const char* name) {
    return store->run([&](kv::Transaction& tx) { return catalog.open(tx, name); });
  }
  // Writes as many revisions of a document of 1,000 bytes.
  void write(const char* database, int revisions) {
    std::string rev;
    for (int i = 0; i < revisions; ++i) {
      const std::string given = rev.empty() ? "" : R"("_rev":")" + rev + R"(",)";
      std::vector documents{
          docs::parse_document(json::compact(R"({"_id":"a",)" + given + R"("n":)" + std::to_string(i) +
                                             R"(,"t":")" + std::string(986, 'x') + "\"}"))};
      const auto result = docs::bulk_edit(*store, catalog, database, documents, rng).front();
      ASSERT_FALSE(result.error) << result.error->what();
      rev = result.revision.to_string();
    }
  }
  std::int64_t old_bytes(const char* database) {
    return store->run(
        [&](kv::Transaction& tx) { return docs::read_info(tx, catalog.open(tx, database)).old.bodies; });
  }
};

TEST_F(Compactors, ByRequest) {
  Compactor compactor(*store, catalog, clock, config, false);
  write("db", 3);
  write("other", 3);
  EXPECT_THAT(compactor.running(), IsEmpty());
  compactor.request(open("db"));
  compactor.request(open("db"));
  EXPECT_EQ(compactor.running().size(), 1u);
  EXPECT_TRUE(compactor.is_running(open("db")));
  EXPECT_FALSE(compactor.is_running(open("other")));
  EXPECT_EQ(old_bytes("db"), 2'000);
  EXPECT_EQ(compactor.step(), MonotonicTime::max());
  EXPECT_EQ(old_bytes("db"), 0);
  EXPECT_EQ(old_bytes("other"), 2'000);
  EXPECT_FALSE(compactor.is_running(open("db")));
}

TEST_F(Compactors, ARequestDuringACompaction) {
  Compactor compactor(*store, catalog, clock, config, false);
  std::atomic<bool> ended = false;
  std::thread steps([&] {
    while (!ended) compactor.step();
  });
  for (int i = 0; i < 300; ++i) {
    const std::string name = "n" + std::to_string(i);
    create(name.c_str());
    write(name.c_str(), 2);
    const auto database = open(name.c_str());
    compactor.request(database);
    store->run([&](kv::Transaction& tx) {
      docs::Writer writer(tx, database);
      auto document = docs::parse_document("{}");
      document.id = "a";
      document.revision = docs::read_tree(tx, database, "a").front().revision();
      writer.edit(document);
      writer.finish();
    });
    compactor.request(database);
    while (compactor.is_running(database)) std::this_thread::yield();
    EXPECT_EQ(old_bytes(name.c_str()), 0) << i;
  }
  ended = true;
  steps.join();
}

TEST_F(Compactors, ADatabaseThatIsDeletedMeanwhile) {
  Compactor compactor(*store, catalog, clock, config, false);
  write("db", 3);
  write("other", 3);
  compactor.request(open("db"));
  compactor.request(open("other"));
  store->run([&](kv::Transaction& tx) { catalog.remove(tx, "db"); });
  create("db");
  write("db", 3);
  compactor.step();
  EXPECT_THAT(compactor.running(), IsEmpty());
  EXPECT_EQ(old_bytes("db"), 2'000);  // another one
  EXPECT_EQ(old_bytes("other"), 0);
}

TEST_F(Compactors, DocumentsThatAreWrittenAllTheTime) {
  constexpr int kDocuments = 50;
  Compactor compactor(*store, catalog, clock, config, false);
  write("other", 3);
  std::vector<std::string> revisions(kDocuments);
  const auto update_all = [&] {
    std::vector<docs::IncomingDocument> documents;
    for (int i = 0; i < kDocuments; ++i) {
      const std::string& rev = revisions[static_cast<std::size_t>(i)];
      const std::string given = rev.empty() ? "" : R"(,"_rev":")" + rev + '"';
      documents.push_back(docs::parse_document(R"({"_id":")" + std::to_string(i) + '"' + given + "}"));
    }
    const auto results = docs::bulk_edit(*store, catalog, "db", documents, rng);
    for (int i = 0; i < kDocuments; ++i)
      revisions[static_cast<std::size_t>(i)] = results[static_cast<std::size_t>(i)].revision.to_string();
  };
  update_all();
  std::atomic<bool> ended = false;
  std::thread writer([&] {
    while (!ended) update_all();
  });
  compactor.request(open("db"));
  compactor.request(open("other"));
  compactor.step();
  ended = true;
  writer.join();
  EXPECT_EQ(old_bytes("other"), 0);
  EXPECT_THAT(compactor.running(), IsEmpty());
  // Those of later updates were left to this one.
  compactor.request(open("db"));
  compactor.step();
  const auto info =
      store->run([&](kv::Transaction& tx) { return docs::read_info(tx, catalog.open(tx, "db")); });
  EXPECT_EQ(info.file_bytes(), info.active_bytes());
}

TEST_F(Compactors, AFailureIsNotRepeatedEachMinute) {
  config.override_with(kSection, kMinSize, "0");
  Compactor compactor(*store, catalog, clock, config, true);
  write("db", 3);
  const auto body = store->run([&](kv::Transaction& tx) {
    const auto db = catalog.open(tx, "db");
    const auto key = db.keys().leaf("a", false, docs::read_tree(tx, db, "a").front().revision());
    const auto row = tx.get(key);
    tx.set(key, "damaged");
    return std::pair(key, *row);
  });
  const auto search = [&](std::chrono::minutes later) {
    clock.advance(later);
    compactor.step();
  };
  search(std::chrono::minutes(1));
  store->run([&](kv::Transaction& tx) { tx.set(body.first, body.second); });
  search(std::chrono::minutes(1));
  EXPECT_EQ(old_bytes("db"), 2'000);
  search(std::chrono::minutes(60));
  EXPECT_EQ(old_bytes("db"), 0);
}

TEST_F(Compactors, Automatically) {
  config.override_with(kSection, kMinSize, "3000");
  Compactor compactor(*store, catalog, clock, config, true);
  write("db", 2);     // 2,000 bytes of which 1,000 are needed: too few
  write("other", 3);  // 3,000
  const auto pass_a_minute = [&] {
    clock.advance(std::chrono::minutes(1));
    EXPECT_EQ(compactor.step(), clock.now() + std::chrono::minutes(1));
  };
  compactor.step();  // not yet
  EXPECT_EQ(old_bytes("other"), 2'000);
  pass_a_minute();
  EXPECT_EQ(old_bytes("db"), 1'000);
  EXPECT_EQ(old_bytes("other"), 0);
  // The ratio is live.
  config.override_with(kSection, kMinSize, "0");
  config.override_with(kSection, kMinPriority, "2.1");
  pass_a_minute();
  EXPECT_EQ(old_bytes("db"), 1'000);
  config.override_with(kSection, kMinPriority, "2.0");
  pass_a_minute();
  EXPECT_EQ(old_bytes("db"), 0);
}

}  // namespace
}  // namespace divan::compaction
