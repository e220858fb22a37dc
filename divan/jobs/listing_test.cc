#include "divan/jobs/listing.h"

#include <fmt/core.h>

#include "divan/jobs/attempts.h"
#include "divan/jobs/maintenance.h"
#include "divan/jobs/rows.h"
#include "divan/jobs/testing.h"

namespace divan::jobs {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

struct Listing : QueueTest {
  void SetUp() override {
    in_tx([&](kv::Transaction& tx) {
      for (const char* type : {"s", "t", "u"}) queue.set_type(tx, type, {.max_attempts = 1});
    });
  }
  void add(std::string_view id, std::string_view type = "t") {
    in_tx([&](kv::Transaction& tx) { queue.add(tx, type, id, "{}"); });
    clock.advance(seconds(1));
  }
  AcceptedJob accept(const AcceptOptions& options = {}, const std::string& type = "t") {
    const std::vector<std::string> types{type};
    return in_tx([&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, options).jobs.at(0); });
  }
  void add_failed(std::string_view id) {
    add(id);
    const auto attempt = accept().attempt();
    in_tx([&](kv::Transaction& tx) { fail(queue, tx, attempt, "no"); });
    clock.advance(seconds(1));
  }
  Listed page(const ListOptions& options) {
    return in_tx([&](kv::Transaction& tx) { return list_jobs(queue, tx, "t", options); });
  }
  // The ids of all pages.
  std::vector<std::string> list(ListOptions options) {
    std::vector<std::string> ids;
    for (;;) {
      const auto listed = page(options);
      EXPECT_LE(listed.jobs.size(), options.limit);
      for (const auto& job : listed.jobs) ids.push_back(job.id);
      if (!listed.next) return ids;
      options.start = *listed.next;
    }
  }
  std::int64_t count(State state) {
    return in_tx([&](kv::Transaction& tx) { return queue.counts(tx, "t")[state]; });
  }
  // Uses transactions of at most `limit` jobs; returns the number of transactions.
  int change_all(State state, BulkChange change, std::size_t limit) {
    const std::int64_t until = clock.wall_ms();
    std::optional<std::string> next = "";
    int transactions = 0;
    for (; next && transactions < 100; ++transactions) {
      next = in_tx([&](kv::Transaction& tx) {
               return change_jobs(queue, tx, "t", state, change, *next, until, limit);
             }).next;
    }
    return transactions;
  }
};

TEST_F(Listing, IsByIdByTheQueueOrByTheEnd) {
  for (const char* id : {"d", "b", "e"}) add_failed(id);
  for (const char* id : {"c", "a"}) add(id);
  for (const std::size_t limit : {1, 2, 100}) {
    EXPECT_THAT(list({.limit = limit}), ElementsAre("a", "b", "c", "d", "e"));
    EXPECT_THAT(list({.descending = true, .limit = limit}), ElementsAre("e", "d", "c", "b", "a"));
    EXPECT_THAT(list({.state = State::failed, .limit = limit}), ElementsAre("d", "b", "e"));
    EXPECT_THAT(list({.state = State::failed, .descending = true, .limit = limit}),
                ElementsAre("e", "b", "d"));
    EXPECT_THAT(list({.state = State::pending, .limit = limit}), ElementsAre("c", "a"));
    EXPECT_THAT(list({.state = State::pending, .descending = true, .limit = limit}), ElementsAre("a", "c"));
    EXPECT_THAT(list({.state = State::finished, .limit = limit}), ElementsAre());
    EXPECT_THAT(list({.start_id = "bb", .limit = limit}), ElementsAre("c", "d", "e"));
    EXPECT_THAT(list({.state = State::failed, .start_id = "b", .limit = limit}), ElementsAre("b", "e"));
  }
  EXPECT_TRUE(page({.limit = 0}).jobs.empty());
  EXPECT_THROW(page({.start = "no digits"}), Error);
  EXPECT_THROW(page({.state = State::failed, .start_id = "a"}), Error);
}

TEST_F(Listing, OfRunningJobsIsThatOfAllWorkers) {
  const auto worker = [&](std::string_view id) {
    return in_tx([&](kv::Transaction& tx) { return registry.add(tx, "r", id, "{}"); });
  };
  const auto one = worker("1"), two = worker("2");
  const std::pair<const char*, std::optional<workers::WorkerRef>> jobs[] = {
      {"c", one}, {"a", two}, {"d", std::nullopt}, {"b", one}};
  for (const auto& [id, ref] : jobs) {
    add(id);
    accept({.worker = ref});
    // Jobs of other types are not listed.
    for (const char* type : {"s", "u"}) {
      add("z", type);
      accept({.worker = ref}, type);
      in_tx([&](kv::Transaction& tx) { queue.resubmit(tx, type, "z"); });
      in_tx([&](kv::Transaction& tx) { queue.remove(tx, type, "z"); });
    }
  }
  add("z", "s");
  accept({.worker = one}, "s");
  add("z", "u");
  accept({.worker = one}, "u");
  for (const std::size_t limit : {1, 2, 100}) {
    EXPECT_THAT(list({.state = State::running, .limit = limit}), ElementsAre("a", "b", "c", "d"));
    EXPECT_THAT(list({.state = State::running, .descending = true, .limit = limit}),
                ElementsAre("d", "c", "b", "a"));
  }
  EXPECT_THAT(list({.state = State::running, .start_id = "bb"}), ElementsAre("c", "d"));
}

TEST_F(Listing, ChangesAllJobsInAStateInBatches) {
  for (const char* id : {"a", "b", "c", "d", "e"}) add_failed(id);
  add("f");
  EXPECT_EQ(change_all(State::failed, BulkChange::resubmit, 2), 3);
  EXPECT_EQ(count(State::failed), 0);
  EXPECT_EQ(count(State::pending), 6);
  EXPECT_EQ(change_all(State::pending, BulkChange::cancel, 4), 2);
  EXPECT_EQ(count(State::cancelled), 6);
  // Ended jobs cannot be cancelled.
  EXPECT_EQ(change_all(State::cancelled, BulkChange::cancel, 4), 1);
  EXPECT_EQ(count(State::cancelled), 6);
  EXPECT_EQ(change_all(State::cancelled, BulkChange::remove, 250), 1);
  EXPECT_EQ(count(State::cancelled), 0);
}

TEST_F(Listing, ChangesOfRunningJobsContinueWhereTheyWere) {
  for (const char* id : {"a", "b", "c"}) {
    add(id);
    accept();
  }
  EXPECT_EQ(change_all(State::running, BulkChange::cancel, 1), 3);
  for (const auto& job : page({.state = State::running}).jobs) EXPECT_TRUE(job.cancel);
}

// Each change writes the job's progress again.
TEST_F(Listing, ChangesEndTheirTransactionWhenItIsLarge) {
  constexpr std::size_t kJobs = 2 * kFullTransaction / kMaxProgressBytes;
  const std::string progress = "\"" + std::string(kMaxProgressBytes - 2, 'x') + "\"";
  for (std::size_t i = 0; i < kJobs; ++i) {
    add(fmt::format("{:04}", i));
    const auto attempt = accept().attempt();
    in_tx([&](kv::Transaction& tx) { update(queue, tx, attempt, std::nullopt, progress); });
  }
  std::optional<std::string> next = "";
  std::size_t changed = 0;
  int transactions = 0;
  for (; next && transactions < 100; ++transactions) {
    const auto some = in_tx([&](kv::Transaction& tx) {
      auto done = change_jobs(queue, tx, "t", State::running, BulkChange::cancel, *next, 0, kJobs);
      EXPECT_LT(tx.approximate_size(), kFullTransaction + 10 * kMaxProgressBytes);
      return done;
    });
    next = some.next;
    changed += some.jobs;
  }
  EXPECT_GE(transactions, 2);
  EXPECT_EQ(changed, kJobs);
}

TEST_F(Listing, ChangesEndAlthoughJobsEndMeanwhile) {
  add_failed("a");
  const std::int64_t until = clock.wall_ms();
  clock.advance(seconds(1));
  add_failed("b");
  const auto progress = in_tx([&](kv::Transaction& tx) {
    return change_jobs(queue, tx, "t", State::failed, BulkChange::remove, "", until, 10);
  });
  EXPECT_EQ(progress.jobs, 1u);
  EXPECT_FALSE(progress.next);
  EXPECT_EQ(count(State::failed), 1);
  // A client may send any number.
  const auto rest = in_tx([&](kv::Transaction& tx) {
    return change_jobs(queue, tx, "t", State::failed, BulkChange::remove, "", INT64_MAX, 10);
  });
  EXPECT_EQ(rest.jobs, 1u);
}

// Rows of an earlier version: header layout 3, and an entry without the state.
TEST_F(Listing, RowsOfAnEarlierVersionAreReadAndUpgraded) {
  add_failed("old");
  add("running");
  accept();
  const auto rewrite = [&](const std::string& id) {
    in_tx([&](kv::Transaction& tx) {
      const std::string key = JobKey("job").string("t").string(id).key();
      const std::string header = *tx.get(key);
      const Job job = *read_job(tx, "t", id);
      // Without `lost`, `limits`, `deadline` and `result`, which precede the history, and the data, which
      // follow it.
      std::string added, history, data, activity, old;
      kv::tuple::Packer(added).integer(0).string("").integer(0).integer(0);
      kv::tuple::Packer(history).integer(job.history);
      kv::tuple::Packer(data).string("").string("");
      if (job.activity) kv::tuple::Packer(activity).versionstamp(*job.activity);
      const std::string end = added + history + data + activity;
      ASSERT_TRUE(header.ends_with(end));
      kv::tuple::Reader reader(header);
      reader.take_int();
      kv::tuple::Packer(old).integer(3);
      old += reader.rest().substr(0, reader.rest().size() - end.size());
      tx.set(key, old + history + activity);
      if (!has_ended(job.state)) return;
      tx.clear(entry_key(job));
      tx.set(JobKey("fin").string("t").integer(job.finished_at).string(id).key(), "");
    });
  };
  rewrite("old");
  rewrite("running");
  EXPECT_EQ(in_tx([&](kv::Transaction& tx) { return queue.find(tx, "t", "old")->last_error; }), "no");
  TearDown();  // includes the checks of `divan verify`
  EXPECT_THAT(list({.limit = 10}), ElementsAre("old", "running"));
  EXPECT_THAT(list({.state = State::running, .limit = 10}), ElementsAre("running"));
  Maintenance(queue, *store, clock).step();
  EXPECT_THAT(list({.state = State::failed, .limit = 10}), ElementsAre("old"));
  EXPECT_TRUE(
      in_tx([](kv::Transaction& tx) { return tx.get_range(JobKey("fin").range(), {}).rows; }).empty());
  clock.advance(std::chrono::hours(25));
  Maintenance(queue, *store, clock).step();
  EXPECT_THAT(list({.limit = 10}), ElementsAre("running"));
}

}  // namespace
}  // namespace divan::jobs
