#include "divan/purge/auto_purge.h"

#include <gmock/gmock.h>

#include "divan/base/json.h"
#include "divan/docs/changes.h"
#include "divan/docs/database_settings.h"
#include "divan/docs/reader.h"
#include "divan/docs/writer.h"
#include "divan/kv/embedded/temporary_store.h"

namespace divan::purge {
namespace {

struct AutoPurges : testing::Test {
  ManualClock clock;
  kv::embedded::TemporaryStore store{&clock};
  SeededRng rng{1};
  events::Bus bus;
  docs::Catalog catalog{bus, clock};
  Config config;
  AutoPurge purges{*store, catalog, clock, config};

  void SetUp() override {
    store->run([&](kv::Transaction& tx) { catalog.create(tx, "db"); });
  }
  void set(std::string_view name, std::string_view json, const char* database = "db") {
    store->run([&](kv::Transaction& tx) { docs::write_config(tx, catalog.open(tx, database), name, json); });
  }
  void set_ttl(const std::string& ttl) {
    set(docs::kAutoPurge, R"({"deleted_document_ttl":")" + ttl + R"("})");
  }
  std::string put(const std::string& json, const char* database = "db") {
    std::vector documents{docs::parse_document(json::compact(json))};
    const auto result = docs::bulk_edit(*store, catalog, database, documents, rng).front();
    EXPECT_FALSE(result.error) << result.error->what();
    return result.revision.to_string();
  }
  void put_deleted(const std::string& id, const char* database = "db") {
    put(R"({"_id":")" + id + R"(","_deleted":true})", database);
  }
  // The ids of all documents, deleted ones too.
  std::vector<std::string> ids(const char* database = "db") {
    std::vector<std::string> found;
    store->run([&](kv::Transaction& tx) {
      docs::visit_changes(tx, catalog.open(tx, database), {}, [&](const docs::Change& change) {
        found.push_back(change.id);
        return true;
      });
    });
    return found;
  }
  // Steps as the thread would make them.
  void pass_hours(int hours) {
    for (int i = 0; i < hours; ++i) {
      clock.advance(std::chrono::hours(1));
      EXPECT_EQ(purges.step(), clock.now() + std::chrono::hours(1));
    }
  }
};

using testing::ElementsAre;

TEST_F(AutoPurges, WhatWasDeletedLongAgo) {
  set_ttl("2_days");
  pass_hours(1);
  put(R"({"_id":"live"})");
  put_deleted("a");
  put(R"({"_id":"other"})");
  pass_hours(40);
  put_deleted("b");
  EXPECT_THAT(ids(), ElementsAre("live", "a", "other", "b"));
  pass_hours(7);
  EXPECT_THAT(ids(), ElementsAre("live", "a", "other", "b")) << "they are younger than two days";
  pass_hours(4);
  EXPECT_THAT(ids(), ElementsAre("live", "other", "b"));
  pass_hours(44);
  EXPECT_THAT(ids(), ElementsAre("live", "other"));
}

TEST_F(AutoPurges, AllLeavesOfADocument) {
  set_ttl("1_hour");
  pass_hours(1);
  std::vector<docs::IncomingDocument> documents;
  for (const char* json :
       {R"({"_id":"a","_rev":"1-b","_deleted":true})", R"({"_id":"a","_rev":"1-c","_deleted":true})",
        R"({"_id":"b","_rev":"1-b","_deleted":true})", R"({"_id":"b","_rev":"1-c"})"})
    documents.push_back(docs::parse_document(json));
  docs::bulk_replicate(*store, catalog, "db", documents);
  pass_hours(4);
  EXPECT_THAT(ids(), ElementsAre("b")) << "one of its leaves is live";
  store->run(
      [&](kv::Transaction& tx) { EXPECT_EQ(docs::read_tree(tx, catalog.open(tx, "db"), "b").size(), 2u); });
}

TEST_F(AutoPurges, WithTheServersDefaultUnlessTheDatabaseHasItsOwn) {
  store->run([&](kv::Transaction& tx) { catalog.create(tx, "own"); });
  set(docs::kAutoPurge, R"({"deleted_document_ttl":"infinity"})", "own");
  pass_hours(1);
  put_deleted("a");
  put_deleted("a", "own");
  pass_hours(100);
  EXPECT_THAT(ids(), ElementsAre("a")) << "nothing is purged without a setting";
  config.override_with(kAutoPurgeSection, kDefaultTtl, "1_day");
  pass_hours(1);
  EXPECT_THAT(ids(), ElementsAre());
  EXPECT_THAT(ids("own"), ElementsAre("a"));
}

TEST_F(AutoPurges, WhatIsDeletedAfterItWasSearched) {
  set_ttl("1_hour");
  pass_hours(1);
  const auto rev = put(R"({"_id":"a"})");
  put(R"({"_id":"b"})");
  pass_hours(5);
  put(R"({"_id":"a","_deleted":true,"_rev":")" + rev + R"("})");
  pass_hours(5);
  EXPECT_THAT(ids(), ElementsAre("b"));
}

TEST_F(AutoPurges, MoreThanOneTransactionSearches) {
  set_ttl("1_hour");
  pass_hours(1);
  std::vector<docs::IncomingDocument> documents;
  for (int i = 0; i < 2'500; ++i) {
    documents.push_back(docs::parse_document(R"({"_id":")" + std::to_string(i) + R"("})"));
    documents.back().deleted = i % 5 != 0;
  }
  docs::bulk_edit(*store, catalog, "db", documents, rng);
  pass_hours(4);
  EXPECT_THAT(ids(), testing::SizeIs(500));
}

TEST_F(AutoPurges, ARestoredDatabaseIsAsOldAsItsRestore) {
  set_ttl("1_day");
  pass_hours(1);
  put_deleted("a");
  pass_hours(20);
  set(docs::kRestoredAt, std::to_string(clock.wall_ms()));
  pass_hours(20);
  EXPECT_THAT(ids(), ElementsAre("a"));
  pass_hours(10);
  EXPECT_THAT(ids(), ElementsAre());
}

TEST_F(AutoPurges, TheRowsOfPurgedDocumentsAreRemoved) {
  set_ttl("1_hour");
  pass_hours(1);
  for (const char* id : {"a", "b", "c"}) put_deleted(id);
  pass_hours(5);
  store->run([&](kv::Transaction& tx) {
    const auto rows = kv::below(catalog.open(tx, "db").keys().purges(docs::PurgeRow::document));
    EXPECT_EQ(tx.get_range(rows).rows.size(), 1u) << "the last one stays";
  });
}

}  // namespace
}  // namespace divan::purge
