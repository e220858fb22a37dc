// A damaged row does not prevent other jobs from being run, reclaimed, listed or pruned, and a damaged job
// can be removed.
#include "divan/jobs/damaged.h"

#include <fmt/core.h>

#include "divan/jobs/attempts.h"
#include "divan/jobs/halts.h"
#include "divan/jobs/listing.h"
#include "divan/jobs/maintenance.h"
#include "divan/jobs/rows.h"
#include "divan/jobs/testing.h"
#include "divan/jobs/worker_jobs.h"

namespace divan::jobs {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

struct DamagedJobs : QueueTest {
  DamagedJobs() {
    in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "t", {.retention = seconds(1000)}); });
  }
  // The store is damaged on purpose.
  void TearDown() override {}

  void add(const std::string& id, const Queue::AddOptions& options = {},
           std::string_view data = R"({"n":1})") {
    in_tx([&](kv::Transaction& tx) { queue.add(tx, "t", id, data, options); });
    clock.advance(seconds(1));
  }
  static std::string key(std::string_view kind, std::string_view id) {
    return JobKey(kind).string("t").string(id).key();
  }
  void set(const std::string& key, std::string_view value) {
    in_tx([&](kv::Transaction& tx) { tx.set(key, value); });
  }
  // With its copy in the entry of a pending job.
  void damage_header(const std::string& id) {
    in_tx([&](kv::Transaction& tx) {
      const Job job = *read_job(tx, "t", id);
      if (job.state == State::pending) tx.set(entry_key(job), "?");
      tx.set(key("job", id), "?");
    });
  }
  std::vector<std::string> accept(std::size_t limit, QueueCursors* cursors = nullptr) {
    const std::vector<std::string> types{"t"};
    return in_tx([&](kv::Transaction& tx) {
      AcceptRequest request{.limit = limit};
      accept_for(queue, tx, types, std::nullopt, std::span(&request, 1), cursors);
      std::vector<std::string> ids;
      for (const auto& job : request.jobs) ids.push_back(job.job.id);
      return ids;
    });
  }
};

TEST_F(DamagedJobs, AtTheHeadOfAQueueAreSkipped) {
  for (const char* id : {"header", "gone", "data", "place", "state", "good", "last"})
    add(id, {},
        id == std::string_view("data") ? '"' + std::string(kMaxDataInHeader, 'x') + '"' : R"({"n":1})");
  damage_header("header");
  in_tx([&](kv::Transaction& tx) {
    // An entry without a copy of the header, as older versions wrote it.
    tx.set(entry_key(*read_job(tx, "t", "gone")), "");
    tx.clear(key("job", "gone"));
    // A copy that belongs elsewhere.
    const auto copy = *tx.get(entry_key(*read_job(tx, "t", "last")));
    tx.set(entry_key(*read_job(tx, "t", "place")), copy);
    tx.clear(JobKey("data").string("t").string("data").integer(0).key());
    // Its entry in the queue remains.
    Job ended = *read_job(tx, "t", "state");
    const std::string entry = entry_key(ended);
    transition(tx, ended, [](Job& job) { job.state = State::cancelled; });
    tx.set(entry, "");
    tx.set(JobKey("pend").string("t").integer(kShard).string("no entry").key(), "");
  });
  QueueCursors cursors;
  EXPECT_THAT(accept(1, &cursors), ElementsAre("good"));
  EXPECT_THAT(accept(10, &cursors), ElementsAre("last"));
  EXPECT_THAT(accept(10, &cursors), ElementsAre());
  in_tx([&](kv::Transaction& tx) { queue.remove(tx, "t", "data"); });
  add("new");
  EXPECT_EQ(in_tx([&](kv::Transaction& tx) { return due_jobs(queue, tx, "t").at(0).id; }), "new");
  EXPECT_THAT(accept(10, &cursors), ElementsAre("new"));
}

TEST_F(DamagedJobs, DoNotCountForMaxRunning) {
  in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "t", {.max_running = 2}); });
  for (int i = 0; i < 20; ++i) {
    add(fmt::format("bad{:02}", i));
    damage_header(fmt::format("bad{:02}", i));
  }
  for (const char* id : {"a", "b", "c"}) add(id);
  EXPECT_THAT(accept(10), ElementsAre("a", "b"));
}

TEST_F(DamagedJobs, AreNotReclaimedAndOthersAre) {
  Maintenance maintenance(queue, *store, clock);
  for (const char* id : {"a", "b"}) add(id);
  accept(2);
  maintenance.step();
  damage_header("a");
  set(JobKey("act").string("t").integer(kShard).string("no entry").key(), "");
  for (int i = 0; i < 40; ++i) {
    clock.advance(seconds(1));
    maintenance.step();
  }
  EXPECT_THAT(accept(10), ElementsAre("b"));
}

TEST_F(DamagedJobs, AreNotPrunedAndOthersAre) {
  for (int i = 0; i < 600; ++i) {
    const auto id = fmt::format("bad{}", i);
    in_tx([&](kv::Transaction& tx) {
      queue.add(tx, "t", id, "{}");
      queue.cancel(tx, "t", id);
      tx.set(key("job", id), "?");
    });
  }
  clock.advance(seconds(1));
  in_tx([&](kv::Transaction& tx) {
    queue.add(tx, "t", "good", "{}");
    queue.cancel(tx, "t", "good");
  });
  clock.advance(seconds(2000));
  Maintenance(queue, *store, clock).step();
  EXPECT_FALSE(in_tx([&](kv::Transaction& tx) { return queue.find(tx, "t", "good"); }));
  EXPECT_TRUE(in_tx([&](kv::Transaction& tx) { return tx.get(key("job", "bad0")); }));
}

TEST_F(DamagedJobs, AreLeftOutOfLists) {
  for (const char* id : {"a", "b"}) add(id);
  damage_header("a");
  const auto listed =
      in_tx([&](kv::Transaction& tx) { return list_jobs(queue, tx, "t", {.limit = 10}).jobs; });
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].id, "b");
}

// Removes a job in each state, with all kinds of rows; other jobs' rows must remain.
struct RemovalOfDamaged : DamagedJobs {
  void SetUp() override {
    in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "t", {.backoff_max = seconds(1)}); });
    for (const char* id : {"before", "j", "later"})
      add(id, {.limits = job_limits(R"({"max_runtime":50000})")});
  }
  void TearDown() override {
    EXPECT_FALSE(remove_damaged(queue, *store, "t", "j"));  // it is not damaged
    damage_header("j");
    EXPECT_THROW(in_tx([&](kv::Transaction& tx) { queue.remove(tx, "t", "j"); }), Error);
    EXPECT_TRUE(remove_damaged(queue, *store, "t", "j"));
    EXPECT_FALSE(remove_damaged(queue, *store, "t", "j"));  // it was removed
    EXPECT_THAT(left(), ElementsAre("before", "later"));
    check_store();
  }
  std::vector<std::string> left() {
    std::vector<std::string> ids;
    for (const auto& job :
         in_tx([&](kv::Transaction& tx) { return list_jobs(queue, tx, "t", {.limit = 10}).jobs; }))
      ids.push_back(job.id);
    return ids;
  }
  // Of the job `j`, the second in the queue.
  Attempt run(const AcceptOptions& options = {}) {
    const std::vector<std::string> types{"t"};
    in_tx([&](kv::Transaction& tx) { queue.resubmit(tx, "t", "j", 1); });
    return in_tx(
        [&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, options).jobs.at(0).attempt(); });
  }
};

TEST_F(RemovalOfDamaged, Pending) {}

TEST_F(RemovalOfDamaged, PendingWithHistory) {
  const auto attempt = run();
  in_tx([&](kv::Transaction& tx) { jobs::fail(queue, tx, attempt, "no"); });
}

TEST_F(RemovalOfDamaged, Running) { run(); }

TEST_F(RemovalOfDamaged, RunningWithDataOfTheNextRun) {
  run();
  in_tx([&](kv::Transaction& tx) { queue.resubmit(tx, "t", "j", 0, R"({"next":1})"); });
}

TEST_F(RemovalOfDamaged, RunningOnAWorker) {
  run({.worker = in_tx([&](kv::Transaction& tx) { return registry.add(tx, "r", "w", "{}"); })});
}

TEST_F(RemovalOfDamaged, Ended) {
  const auto attempt = run();
  in_tx([&](kv::Transaction& tx) {
    finish(queue, tx, attempt, std::nullopt, std::nullopt, R"({"result":1})");
  });
}

// Removing the type also removes the entries of running jobs; by such an entry, a later job could be
// reclaimed from a live worker.
TEST_F(DamagedJobs, GoWithTheirType) {
  const auto worker = in_tx([&](kv::Transaction& tx) { return registry.add(tx, "r", "w", "{}"); });
  const std::vector<std::string> types{"t"};
  add("a");
  in_tx([&](kv::Transaction& tx) { jobs::accept(queue, tx, types, {.worker = worker}); });
  EXPECT_EQ(
      in_tx([&](kv::Transaction& tx) { return jobs_of_worker(queue, tx, "r", "w", "t", "", 9).size(); }), 1u);
  damage_header("a");
  EXPECT_TRUE(
      in_tx([&](kv::Transaction& tx) { return jobs_of_worker(queue, tx, "r", "w", "t", "", 9).empty(); }));
  in_tx([&](kv::Transaction& tx) { queue.remove_type(tx, "t", true); });
  check_store();
}

// Unreadable keys or rows: a type of running jobs, a worker that has ended, a halt.
TEST_F(DamagedJobs, OrKeysDoNotPreventOthersFromBeingReclaimed) {
  const auto worker = in_tx([&](kv::Transaction& tx) { return registry.add(tx, "r", "w", "{}"); });
  queue.set_reclaimed_at_once(1);
  const std::vector<std::string> types{"t"};
  for (const char* id : {"a", "b", "c"}) add(id);
  in_tx([&](kv::Transaction& tx) { jobs::accept(queue, tx, types, {.limit = 2, .worker = worker}); });
  accept(1);
  for (const char* kind : {"act", "deadline", "fin", "end"}) set(JobKey(kind).integer(1).key(), "");
  set(JobKey("left").integer(1).key(), "");
  in_tx([&](kv::Transaction& tx) { registry.remove(tx, worker); });
  Maintenance maintenance(queue, *store, clock);
  pass(maintenance, seconds(60));
  EXPECT_EQ(accept(10).size(), 3u);
  set(JobKey("halt").string("r").string("w").integer(1).key(), "?");
  in_tx([&](kv::Transaction& tx) { EXPECT_TRUE(take_halts(tx, "r", "w").empty()); });
  in_tx([&](kv::Transaction& tx) {
    EXPECT_FALSE(tx.get(JobKey("halt").string("r").string("w").integer(1).key()));
  });
}

// While its entries are searched for, another client removes it and adds a job with its id.
TEST_F(DamagedJobs, ThatWereReplacedMeanwhileAreNotRemoved) {
  add("a");
  damage_header("a");
  EventfulStore eventful(*store, 2, [&] {
    EXPECT_TRUE(remove_damaged(queue, *store, "t", "a"));
    add("a");
  });
  EXPECT_FALSE(remove_damaged(queue, eventful, "t", "a"));
  EXPECT_THAT(accept(10), ElementsAre("a"));
  check_store();
}

TEST_F(DamagedJobs, OfANewerLayoutAreNotRemoved) {
  add("a");
  std::string newer;
  kv::tuple::Packer(newer).integer(7);
  set(key("job", "a"), newer);
  EXPECT_FALSE(remove_damaged(queue, *store, "t", "a"));
}

// Without an entry, the state may still be readable from the header.
TEST_F(DamagedJobs, WithoutAnEntryLeaveTheCountsCorrect) {
  add("a");
  const Job job = in_tx([&](kv::Transaction& tx) { return *read_job(tx, "t", "a"); });
  in_tx([&](kv::Transaction& tx) {
    tx.clear(entry_key(job));
    const auto header = *tx.get(key("job", "a"));
    tx.set(key("job", "a"), header.substr(0, header.size() - 1));
  });
  EXPECT_TRUE(remove_damaged(queue, *store, "t", "a"));
  check_store();
}

TEST_F(DamagedJobs, OfATypesScheduleIsRemovedWithTheSchedule) {
  const auto daily = Schedule::parse("@daily", "UTC").json();
  in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "t", {.schedule = daily}); });
  damage_header("_periodic");
  EXPECT_TRUE(remove_damaged(queue, *store, "t", "_periodic"));
  EXPECT_EQ(in_tx([&](kv::Transaction& tx) { return queue.type(tx, "t").schedule; }), "");
  check_store();
}

// A type whose settings are damaged does not prevent the maintenance of other types' jobs.
TEST_F(DamagedJobs, OrTypesDoNotPreventMaintenanceOfOthers) {
  in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "bad", {}); });
  set(JobKey("type").string("bad").key(), "?");
  add("a");
  accept(1);
  Maintenance maintenance(queue, *store, clock);
  pass(maintenance, seconds(60));
  EXPECT_THAT(accept(10), ElementsAre("a"));
  in_tx([&](kv::Transaction& tx) { queue.remove_type(tx, "bad", true); });
  EXPECT_THAT(in_tx([&](kv::Transaction& tx) { return queue.types(tx); }), ElementsAre("t"));
}

}  // namespace
}  // namespace divan::jobs
