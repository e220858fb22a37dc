// Which jobs ken requests, in which order, and how many at a time.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "divan/index/left_out.h"
#include "divan/ken/testing.h"

namespace divan::ken {
namespace {

// Case 1; the other half is KenSettings.
TEST_F(KenTest, SettingsAreKeptAndTheOldOnesReturned) {
  EXPECT_EQ(ken->set_limit(12), 20);
  EXPECT_EQ(ken->set_limit(6), 12);
  EXPECT_EQ(ken->set_batch_size(3), 1);
  EXPECT_EQ(ken->set_delay(0), 5000);
  EXPECT_EQ(ken->set_delay(10'000), 0);
  EXPECT_EQ(ken->set_prune_interval(70'000), 60'000);
  EXPECT_THROW(ken->set_limit(0), Error);
  EXPECT_THROW(ken->set_batch_size(-12), Error);
  EXPECT_THROW(ken->set_delay(-1), Error);
  EXPECT_THROW(ken->set_prune_interval(1000), Error);
  settle();
  EXPECT_EQ(ken->status().settings.limit, 6);
  EXPECT_EQ(ken->status().settings.delay, seconds(10));
}

TEST_F(KenTest, RequestsEachJobOnce) {
  put_design(1);
  put(R"({"_id":"_design/same","views":{"v":{"map":"function(doc) { emit(1); }"}}})");
  put_design(2);
  put(R"({"_id":"_design/none","filters":{}})");
  scan();
  scan();
  EXPECT_EQ(all_jobs().size(), 2u);
  EXPECT_EQ(ken->status().active.size(), 2u);
  build_all();
  settle();
  EXPECT_TRUE(ken->status().active.empty());
}

// Case 3.
TEST_F(KenTest, AutoupdateSwitchesItOff) {
  put_design(1, "db", R"(,"autoupdate":false)");
  put_design(2, "db", R"(,"autoupdate":{"views":false})");
  put_design(3, "db", R"(,"autoupdate":{"indexes":false,"st_indexes":false})");
  put_design(4, "db", R"(,"autoupdate":true)");
  put_design(5, "db", R"(,"autoupdate":"false")");
  scan();
  EXPECT_EQ(pending(), (std::vector<std::string>{"_design/3", "_design/4", "_design/5"}));
}

TEST_F(KenTest, UnknownLanguagesAreSkipped) {
  put_design(1, "db", R"(,"language":"erlang")");
  put_design(2, "db", R"(,"language":"javascript")");
  scan();
  EXPECT_EQ(pending(), (std::vector<std::string>{"_design/2"}));
}

// Case 4.
TEST_F(KenTest, IgnoredDatabasesAreLeftAlone) {
  put_design(1);
  config.override_with("ken.ignore", "db", "true");
  scan();
  EXPECT_TRUE(all_jobs().empty());
  config.override_with("ken.ignore", "db", "false");
  scan();
  EXPECT_EQ(all_jobs().size(), 1u);
}

// Case 5.
TEST_F(KenTest, WithAllBatchChannelsTakenOnlyNearIndexesAreBuilt) {
  const auto running = take_batch_channel();
  create("near");
  put_design(1, "near");
  put_documents(998, "near");
  create("far");
  put_design(2, "far");
  put_documents(999, "far");
  scan("far");
  scan("near");
  EXPECT_EQ(pending(), (std::vector<std::string>{"_design/1"}));
  EXPECT_EQ(wait_reason_of("_design/2"), WaitReason::batch_channels);
  // As soon as a batch channel is free, not after a minute.
  build(running);
  build(accept().at(0));
  settle();
  EXPECT_EQ(pending(), (std::vector<std::string>{"_design/2"}));
  EXPECT_EQ(wait_reason_of("_design/2"), std::nullopt);
}

// The same of indexes that were built: what is counted then are the changes that they lack.
TEST_F(KenTest, AnIndexThatWasBuiltIsNearUpTo999Changes) {
  create("near");
  put_design(1, "near");
  create("far");
  put_design(2, "far");
  scan("near");
  scan("far");
  build_all();
  settle();
  const auto running = take_batch_channel();
  put_documents(999, "near");
  put_documents(1000, "far");
  clock.advance(milliseconds(5001));
  scan("far");
  scan("near");
  EXPECT_EQ(pending(), (std::vector<std::string>{"_design/1"}));
  EXPECT_EQ(wait_reason_of("_design/2"), WaitReason::batch_channels);
  // One that is 999 behind is as urgent as any small one, one that is 1,000 behind is not.
  const auto near = accept().at(0);
  EXPECT_EQ(near.job.priority, index::kCatchUpPriority);
  build(near);
  build(running);
  settle();
  EXPECT_EQ(accept().at(0).job.priority, index::kBuildPriority);
}

TEST_F(KenTest, TheSmallGoBeforeTheLarge) {
  config.override_with("ken", "max_incremental_updates", "5");
  put_documents(5);
  put_design(1);
  scan();
  create("small");
  put_design(2, "small");
  scan("small");
  const auto jobs = accept(2);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(index::database_of_build(jobs[0].job.id), "small");
  EXPECT_EQ(jobs[0].job.priority, index::kCatchUpPriority);
  EXPECT_EQ(jobs[1].job.priority, index::kBuildPriority);
}

TEST_F(KenTest, ALargeBuildThatHasWaitedForAMinuteBecomesUrgent) {
  config.override_with("ken", "max_incremental_updates", "5");
  put_documents(5);
  put_design(1);
  const auto start = clock.now();
  scan();
  until(start, seconds(60));
  EXPECT_EQ(all_jobs().at(0).priority, index::kBuildPriority);
  until(start, seconds(70));
  EXPECT_EQ(all_jobs().at(0).priority, index::kOverduePriority);
}

// Case 6.
TEST_F(KenTest, ADatabaseWaitsOnce) {
  put_design(1);
  create("other");
  for (int i = 0; i < 3; ++i) {
    ken->add("db");
    ken->add("other");
  }
  EXPECT_EQ(ken->status().queue, (std::vector<std::string>{"db", "other"}));
  std::size_t reads = 0;
  kind->on_read = [&](const std::string&) { ++reads; };
  settle();
  EXPECT_EQ(reads, 1u);
}

// Case 7.
TEST_F(KenTest, RemoveStopsActiveJobsAndForgetsTheDatabase) {
  put_design(1);
  put_design(2);
  create("other");
  put_design(3, "other");
  scan();
  scan("other");
  const auto running = accept().at(0);
  ken->add("db");
  ken->remove("db");
  EXPECT_TRUE(ken->status().queue.empty());
  settle();
  EXPECT_EQ(pending(), (std::vector<std::string>{"_design/3"}));
  EXPECT_EQ(all_jobs().size(), 1u);
  EXPECT_THROW(store->run([&](kv::Transaction& tx) { jobs::update(queue, tx, running.attempt()); }), Error);
  EXPECT_EQ(ken->status().active.size(), 1u);
}

TEST_F(KenTest, RemoveAlsoStopsJobsThatWereRequestedElsewhere) {
  put_design(1);
  scan();
  const auto running = accept().at(0);
  restart();
  ken->remove("db");
  settle();
  EXPECT_TRUE(all_jobs().empty());
}

// The event of the deletion comes when another database has the name.
TEST_F(KenTest, ADeletionDoesNotStopTheJobsOfANewDatabase) {
  put_design(1);
  scan();
  const auto old = accept().at(0);
  store->run([&](kv::Transaction& tx) { catalog.remove(tx, "db"); });
  create("db");
  put_design(2);
  scan();
  const auto running = accept().at(0);
  put_design(3);
  ken->handle({.kind = std::string(kind_name(events::DatabaseEvent::deleted)), .database = "db"});
  scan();
  EXPECT_EQ(pending(), (std::vector<std::string>{"_design/3"}));
  EXPECT_NO_THROW(store->run([&](kv::Transaction& tx) { jobs::update(queue, tx, running.attempt()); }));
  EXPECT_THROW(store->run([&](kv::Transaction& tx) { jobs::update(queue, tx, old.attempt()); }), Error);
  EXPECT_EQ(ken->status().active.size(), 2u);
}

TEST_F(KenTest, AChannelThatBecomesFreeIsForTheDatabaseThatHasWaitedLongest) {
  const auto running = take_batch_channel();
  config.override_with("ken", "max_incremental_updates", "1");
  for (const char* name : {"c", "b", "a"}) {
    create(name);
    put_design(name[0], name);
    scan(name);
    clock.advance(seconds(1));
  }
  EXPECT_TRUE(pending().empty());
  build(running);
  settle();
  EXPECT_EQ(pending(), (std::vector<std::string>{"_design/99"}));  // of "c"
}

TEST_F(KenTest, ADatabaseThatChangesAllTheTimeIsScannedAtIntervals) {
  put_design(1);
  scan();
  std::size_t reads = 0;
  kind->on_read = [&](const std::string&) { ++reads; };
  const auto start = clock.now();
  for (int ms = 0; ms < 100; ++ms) {
    ken->add("db");
    until(start, milliseconds(ms));
  }
  EXPECT_EQ(reads, 2u);
}

TEST_F(KenTest, MoreChannelsCountAtOnce) {
  const auto running = take_batch_channel();
  config.override_with("ken", "max_incremental_updates", "1");
  put_design(1);
  scan();
  config.override_with("ken", "batch_channels", "2");
  ken->reconsider();
  settle();
  EXPECT_EQ(pending(), (std::vector<std::string>{"_design/1"}));
}

// Case 9.
TEST_F(KenTest, TheCapHoldsWithFiveHundredIndexes) {
  std::vector<docs::IncomingDocument> designs;
  for (int i = 0; i < 500; ++i) designs.push_back(docs::parse_document(json::compact(design(i))));
  docs::bulk_edit(*store, catalog, "db", designs, rng);
  scan();
  EXPECT_EQ(pending().size(), 20u);  // the limit of one database
  ken->set_limit(1000);
  settle();
  EXPECT_EQ(pending().size(), 100u);
  scan();
  EXPECT_EQ(pending().size(), 100u);
  EXPECT_EQ(ken->status().active.size(), 100u);
  // And all of them are built, a hundred at a time at most, without waiting for a minute.
  std::size_t built = 0;
  for (int i = 0; i < 1000 && built < 500; ++i) {
    const auto jobs = accept(7);
    for (const auto& job : jobs) build(job);
    built += jobs.size();
    settle();
    ASSERT_LE(pending().size(), 100u);
  }
  EXPECT_EQ(built, 500u);
  EXPECT_LT(clock.now().time_since_epoch(), seconds(55));
}

TEST_F(KenTest, TheLimitLeavesChannelsToOthers) {
  ken->set_limit(2);
  for (int i = 0; i < 4; ++i) put_design(i);
  create("other");
  put_design(5, "other");
  scan();
  scan("other");
  EXPECT_EQ(pending().size(), 3u);
  EXPECT_EQ(ken->status().waiting.at(0).why, WaitReason::limit);
  for (const auto& job : accept(3)) {
    if (index::database_of_build(job.job.id) == "db") build(job);
  }
  settle();
  EXPECT_EQ(pending().size(), 2u);
}

TEST_F(KenTest, AMalformedDesignDocumentHurtsNoOther) {
  put_design(1);
  // What was replicated is not checked.
  docs::bulk_replicate(*store, catalog, "db",
                       {docs::parse_document(R"({"_id":"_design/bad","_rev":"1-a","views":"x"})")});
  scan();
  EXPECT_EQ(pending(), (std::vector<std::string>{"_design/1"}));
  EXPECT_TRUE(ken->status().retries.empty());
}

// Case 12.
TEST_F(KenTest, AnUpdateDuringAScanIsNotLost) {
  put_design(1);
  bool first = true;
  kind->on_read = [&](const std::string&) {
    if (!std::exchange(first, false)) return;
    EXPECT_EQ(ken->status().scanning, "db");
    put_design(2);  // which is not in the list of design documents that was read
    ken->add("db");
  };
  scan();
  EXPECT_EQ(pending(), (std::vector<std::string>{"_design/1", "_design/2"}));
}

TEST_F(KenTest, KnowsWhichIndexesLackRowsOfDocuments) {
  const auto lacking = [&] {
    std::vector<std::string> names;
    for (const auto& index : ken->status().left_out) names.push_back(index.design_document);
    std::sort(names.begin(), names.end());
    return names;
  };
  const auto leave_out = [&](const std::string& job, bool before, bool after) {
    store->run([&](kv::Transaction& tx) {
      const auto request = index::BuildRequest::parse(queue.data(tx, *queue.find(tx, "views", job)));
      const auto record = [](bool any) {
        return any ? std::optional(index::LeftOut{1, "no"}) : std::nullopt;
      };
      index::write_left_out(tx, index::IndexKeys(catalog.open(tx, "db"), request.signature), "a",
                            record(before), record(after));
    });
  };
  using Names = std::vector<std::string>;
  put_design(1);
  put_design(2);
  scan();
  // With the build's end, although the database is not scanned.
  const auto jobs = accept(2);
  leave_out(jobs.at(0).job.id, false, true);
  for (const auto& job : jobs) build(job);
  settle();
  const std::string first = index::BuildRequest::parse(jobs.at(0).data).design_document;
  EXPECT_EQ(lacking(), Names{first});
  scan();
  EXPECT_EQ(lacking(), Names{first});
  // A process that starts finds it, even if it does not build it.
  const std::string number = first.substr(first.size() - 1);
  const auto revision = [&](const std::string& id) {
    return store->run([&](kv::Transaction& tx) {
      return docs::read_tree(tx, catalog.open(tx, "db"), id).front().revision().to_string();
    });
  };
  put_design(std::stoi(number), "db", fmt::format(R"(,"autoupdate":false,"_rev":"{}")", revision(first)));
  restart();
  scan();
  EXPECT_EQ(lacking(), Names{first});
  // The document was repaired.
  leave_out(jobs.at(0).job.id, true, false);
  scan();
  EXPECT_EQ(lacking(), Names{});
  leave_out(jobs.at(1).job.id, false, true);
  scan();
  EXPECT_EQ(lacking().size(), 1u);
  ken->remove("db");
  EXPECT_EQ(lacking(), Names{});
}

// Case 14: one of two processes requests the job, and only its worker can write.
TEST_F(KenTest, TwoKensRequestOneJob) {
  Ken other(*store, catalog, queue, kinds, clock, rng, config);
  put_design(1);
  scan();
  other.add("db");
  while (other.step()) {}
  EXPECT_EQ(all_jobs().size(), 1u);
  EXPECT_TRUE(other.status().active.empty());
  const auto first = accept().at(0);
  EXPECT_TRUE(accept().empty());
  put_documents(1);
  other.add("db");
  while (other.step()) {}
  scan();
  EXPECT_TRUE(accept().empty());
  EXPECT_FALSE(all_jobs().at(0).resubmit);
}

TEST_F(KenTest, DesignDocumentsAreScannedInRandomOrder) {
  std::set<std::string> first;
  for (int i = 0; i < 5; ++i) put_design(i);
  ken->set_limit(1);
  for (int i = 0; i < 40; ++i) {
    scan();
    for (const auto& id : pending()) first.insert(id);
    ken->remove("db");
    settle();
  }
  EXPECT_EQ(first.size(), 5u);
}

TEST_F(KenTest, JobsWithForeignIdsAffectNoDatabase) {
  put_design(1);
  store->run([&](kv::Transaction& tx) { queue.add(tx, "views", "made up", "{}"); });
  scan();
  const auto jobs = accept(2);
  ken->remove("db");
  settle();
  ASSERT_EQ(all_jobs().size(), 1u);
  EXPECT_EQ(all_jobs().front().id, "made up");
}

}  // namespace
}  // namespace divan::ken
