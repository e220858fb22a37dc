#include "divan/replicator/document_processor.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "divan/base/json.h"
#include "divan/docs/reader.h"
#include "divan/docs/writer.h"
#include "divan/jobs/listing.h"
#include "divan/jobs/testing.h"
#include "divan/replicator/document_rows.h"

namespace divan::replicator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr const char* kName = "_replicator";

struct DocumentProcessors : jobs::QueueTest {
  events::Bus bus;
  docs::Catalog catalog{bus, clock};
  std::vector<std::string> cancelled;
  DocumentProcessor processor{*store, catalog,  queue,
                              clock,  "server", [this](const std::string& id) { cancelled.push_back(id); }};

  void SetUp() override {
    declare_replications(queue, *store);
    create();
  }
  void create(const char* name = kName) {
    in_tx([&](kv::Transaction& tx) { catalog.create(tx, name); });
  }
  std::string put(const std::string& json, const char* name = kName) {
    std::vector documents{docs::parse_document(json::compact(json))};
    const auto result = docs::bulk_edit(*store, catalog, name, documents, rng).front();
    EXPECT_FALSE(result.error) << result.error->what();
    return result.revision.to_string();
  }
  std::string replication(const std::string& id, const std::string& source, const std::string& rev = {}) {
    return put(fmt::format(R"({{"_id":"{}",{}"source":"{}","target":"t"}})", id,
                           rev.empty() ? "" : fmt::format(R"("_rev":"{}",)", rev), source));
  }
  std::string body(const std::string& id, const char* name = kName) {
    return in_tx(
        [&](kv::Transaction& tx) { return docs::find_document(tx, catalog.open(tx, name), id, {}).body; });
  }
  // The documents and sources of the jobs in a state.
  std::vector<std::string> jobs_of(jobs::State state = jobs::State::pending) {
    return in_tx([&](kv::Transaction& tx) {
      std::vector<std::string> found;
      for (const auto& job : jobs::list_jobs(queue, tx, kJobType, {.state = state, .limit = 1000}).jobs) {
        const auto data = ReplicationJob::parse(queue.data(tx, job));
        found.push_back(data.document + " " + data.replication.source.database);
      }
      return found;
    });
  }
  std::vector<std::string> damaged_rows() {
    kv::testing::MapRows rows(*store);
    kv::Findings findings;
    rows::Check check(findings);
    kv::testing::run_checks(rows, {&check});
    return findings.kept();
  }
};

TEST_F(DocumentProcessors, DocumentsOfUnmarkedDatabasesAreFoundAtTheBeginning) {
  replication("a", "s1");
  processor.step();
  EXPECT_THAT(jobs_of(), ElementsAre("a s1"));
  // This one is not marked.
  replication("b", "s2");
  processor.step();
  EXPECT_THAT(jobs_of(), ElementsAre("a s1"));
}

struct MarkedDatabases : DocumentProcessors {
  MarkedDatabases() { mark_changed_databases(catalog); }
};

TEST_F(MarkedDatabases, ADocumentHasOneJobWhateverBecomesOfIt) {
  const auto first = replication("a", "s1");
  processor.step();
  const auto second = replication("a", "s2", first);
  replication("b", "s3");
  processor.step();
  EXPECT_THAT(jobs_of(), UnorderedElementsAre("a s2", "b s3"));
  EXPECT_THAT(jobs_of(jobs::State::cancelled), ElementsAre("a s1"));
  put(fmt::format(R"({{"_id":"a","_rev":"{}","_deleted":true}})", second));
  processor.step();
  EXPECT_THAT(jobs_of(), ElementsAre("b s3"));
  EXPECT_EQ(cancelled.size(), 2u);
  EXPECT_THAT(damaged_rows(), IsEmpty());
}

TEST_F(MarkedDatabases, AJobThatWasAddedIsNotAddedAgain) {
  replication("a", "s1");
  processor.step();
  in_tx([&](kv::Transaction& tx) {
    for (const auto& job : jobs::list_jobs(queue, tx, kJobType, {}).jobs) queue.cancel(tx, kJobType, job.id);
  });
  for (int i = 0; i < 3; ++i) processor.step();
  DocumentProcessor{*store, catalog, queue, clock, "server", {}}.step();
  EXPECT_THAT(jobs_of(), IsEmpty());
}

TEST_F(MarkedDatabases, WhatCannotBeReplicatedFails) {
  put(R"({"_id":"bad","source":5,"target":"t"})");
  put(R"({"_id":"ok","source":"s","target":"t"})");
  put(R"({"_id":"same","source":"s","target":"t"})");
  put(R"({"_id":"ended","source":"s2","target":"t","_replication_state":"failed"})");
  processor.step();
  EXPECT_THAT(body("bad"), HasSubstr(R"("_replication_state":"failed")"));
  EXPECT_THAT(body("bad"), HasSubstr(R"("_replication_state_time":"1970-01-01T00:16:40Z")"));
  EXPECT_THAT(body("same"), HasSubstr("already started by document `ok` in db `_replicator`"));
  EXPECT_THAT(jobs_of(), ElementsAre("ok s"));
}

TEST_F(MarkedDatabases, ThoseOfADeletedDatabaseAreCancelled) {
  create("x/_replicator");
  for (int i = 0; i < 250; ++i)
    put(fmt::format(R"({{"_id":"d{0}","source":"s{0}","target":"t"}})", i), "x/_replicator");
  processor.step();
  EXPECT_EQ(jobs_of().size(), 250u);
  in_tx([&](kv::Transaction& tx) { catalog.remove(tx, "x/_replicator"); });
  create("x/_replicator");
  put(R"({"_id":"d0","source":"other","target":"t"})", "x/_replicator");
  processor.step();
  EXPECT_THAT(jobs_of(), ElementsAre("d0 other"));
  EXPECT_EQ(cancelled.size(), 250u);
}

TEST_F(MarkedDatabases, ProcessorsDoNotDisturbEachOther) {
  for (int i = 0; i < 300; ++i) replication(fmt::format("d{}", i), fmt::format("s{}", i % 150));
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] { DocumentProcessor{*store, catalog, queue, clock, "server", {}}.step(); });
  }
  // Transactions that conflict pause before they are tried again.
  std::atomic<bool> have_ended = false;
  std::thread time([&] {
    while (!have_ended) {
      clock.advance(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  for (auto& thread : threads) thread.join();
  have_ended = true;
  time.join();
  EXPECT_EQ(jobs_of().size(), 150u);
  int failed = 0;
  for (int i = 0; i < 300; ++i) failed += outcome_of(body(fmt::format("d{}", i))).has_value() ? 1 : 0;
  EXPECT_EQ(failed, 150);
}

TEST_F(MarkedDatabases, AnOutcomeIsThatOfTheDocumentThatAskedForIt) {
  const auto first = replication("a", "s1");
  const auto job = job_of_document(kName, "a", body("a"));
  replication("a", "s2", first);
  const auto record = [&] {
    in_tx([&](kv::Transaction& tx) {
      record_outcome(tx, catalog, job, {.id = "id", .stats = R"({"docs_read":1})"}, kNow);
    });
  };
  record();
  EXPECT_EQ(outcome_of(body("a")), std::nullopt);
  put(R"({"_id":"b","source":"s1","target":"t"})");
  const auto other = job_of_document(kName, "b", body("b"));
  in_tx([&](kv::Transaction& tx) { record_outcome(tx, catalog, other, {.id = "id", .stats = "{}"}, kNow); });
  EXPECT_EQ(body("b"), R"({"source":"s1","target":"t","_replication_state":"completed",)"
                       R"("_replication_state_time":"1970-01-01T00:16:40Z","_replication_stats":{},)"
                       R"("_replication_id":"id"})");
}

TEST(DocumentRowsTest, DamageIsFound) {
  kv::Findings findings;
  rows::Check check(findings);
  const auto processed = rows::encode({5, {}});
  EXPECT_EQ(rows::decode_processed(processed).number, 5);
  EXPECT_TRUE(check.row(rows::changed("db"), ""));
  EXPECT_TRUE(check.row(rows::processed("db"), processed));
  EXPECT_TRUE(check.row(rows::requested("db", "doc"), "id"));
  EXPECT_TRUE(check.row(rows::signal(), std::string(8, 'x')));
  EXPECT_EQ(findings.count(), 0u);
  EXPECT_TRUE(check.row(rows::changed("db"), "x"));
  EXPECT_TRUE(check.row(rows::processed("db"), processed + "x"));
  EXPECT_TRUE(check.row(rows::requested("db", "doc"), ""));
  EXPECT_TRUE(check.row(rows::signal(), "x"));
  EXPECT_TRUE(check.row(rows::all_changed(), ""));
  EXPECT_EQ(findings.count(), 5u);
  EXPECT_FALSE(check.row("x", ""));
}

}  // namespace
}  // namespace divan::replicator
