#include "divan/jobs/worker_batch.h"

#include "divan/jobs/attempts.h"
#include "divan/jobs/damaged.h"
#include "divan/jobs/listing.h"
#include "divan/jobs/testing.h"
#include "divan/jobs/worker_jobs.h"

namespace divan::jobs {
namespace {

struct WorkerBatches : QueueTest {
  const std::vector<std::string> types{"t"};
  workers::WorkerRef worker;

  void SetUp() override {
    in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "t", {}); });
    worker = in_tx([&](kv::Transaction& tx) { return registry.add(tx, "role", "w", "{}"); });
  }
  void add(std::size_t jobs, const std::string& prefix = "j") {
    in_tx([&](kv::Transaction& tx) {
      for (std::size_t i = 0; i < jobs; ++i) queue.add(tx, "t", prefix + std::to_string(i), "{}");
    });
  }
  std::vector<AcceptedJob> accept(std::size_t limit) {
    return in_tx([&](kv::Transaction& tx) {
      return jobs::accept(queue, tx, types, {.limit = limit, .worker = worker}).jobs;
    });
  }
  void finish(const AcceptedJob& job) {
    in_tx([&](kv::Transaction& tx) { jobs::finish(queue, tx, job.attempt()); });
  }
  std::size_t rows(std::string_view kind) {
    return in_tx([&](kv::Transaction& tx) { return tx.get_range(JobKey(kind).range()).rows.size(); });
  }
  // The number of running jobs in each batch.
  std::vector<std::int64_t> batches() {
    std::vector<std::int64_t> running;
    in_tx([&](kv::Transaction& tx) {
      running.clear();
      visit_batches(queue, tx, JobKey("batch").range(), kv::Isolation::snapshot, [&](const auto& batch) {
        if (batch.running > 0) running.push_back(batch.running);
      });
    });
    return running;
  }
  std::string running_ids() {
    std::string ids;
    in_tx([&](kv::Transaction& tx) {
      ids.clear();
      for (const auto& job : list_jobs(queue, tx, "t", {.state = State::running}).jobs) ids += job.id;
    });
    return ids;
  }
  std::string ids_of_worker(std::string_view start, std::size_t limit) {
    std::string ids;
    in_tx([&](kv::Transaction& tx) {
      ids.clear();
      for (const auto& job : jobs_of_worker(queue, tx, "role", "w", "t", start, limit)) ids += job.id;
    });
    return ids;
  }
};

TEST_F(WorkerBatches, AllButTheFirstJobOfAnAcceptShareAnEntry) {
  add(5);
  const auto jobs = accept(5);
  EXPECT_EQ(rows("by_worker"), 1u);
  EXPECT_EQ(batches(), std::vector<std::int64_t>{4});
  for (std::size_t i = 0; i < 3; ++i) finish(jobs[i]);
  EXPECT_EQ(rows("by_worker"), 0u);
  EXPECT_EQ(batches(), std::vector<std::int64_t>{2});
  EXPECT_EQ(running_ids(), "j3j4");
  finish(jobs[3]);
  finish(jobs[4]);
  EXPECT_TRUE(batches().empty());
  EXPECT_EQ(running_ids(), "");
}

TEST_F(WorkerBatches, TheLayoutOfAHeaderSaysThatTheNumberOfABatchFollows) {
  add(2);
  const auto jobs = accept(2);
  const auto header = [&](const std::string& id) {
    const std::string key = JobKey("job").string("t").string(id).key();
    return in_tx([&](kv::Transaction& tx) { return tx.get(key).value(); });
  };
  std::string batch;
  kv::tuple::Packer(batch).integer(jobs[1].job.batch);
  const std::string in_batch = header("j1");
  EXPECT_EQ(kv::tuple::Reader(in_batch).take_int(), 6);
  EXPECT_TRUE(in_batch.ends_with(batch));
  const std::string alone = header("j0");
  EXPECT_EQ(kv::tuple::Reader(alone).take_int(), 5);
  EXPECT_THROW(decode_job("t", "j1", in_batch.substr(0, in_batch.size() - batch.size())), Error);
  finish(jobs[1]);
  const std::string finished = header("j1");
  EXPECT_EQ(kv::tuple::Reader(finished).take_int(), 5);
}

TEST_F(WorkerBatches, TheRowsAreUsedAgainAndRemovedWithTheWorker) {
  for (int i = 0; i < 50; ++i) {
    add(3);
    for (const auto& job : accept(3)) finish(job);
  }
  EXPECT_LE(rows("batch"), 32u);
  add(3);
  EXPECT_EQ(accept(3).size(), 3u);
  in_tx([&](kv::Transaction& tx) { registry.remove(tx, worker); });
  EXPECT_EQ(rows("batch"), 0u);
  EXPECT_EQ(in_tx([&](kv::Transaction& tx) { return queue.counts(tx, "t")[State::pending]; }), 3);
}

TEST_F(WorkerBatches, ABatchWithARunningJobIsNotOverwritten) {
  std::vector<AcceptedJob> kept;
  for (int i = 0; i < 40; ++i) {
    add(4, std::to_string(i) + "-");
    auto jobs = accept(4);
    ASSERT_EQ(jobs.size(), 4u);
    for (int n = 0; n < 3; ++n) finish(jobs[static_cast<std::size_t>(n)]);
    kept.push_back(std::move(jobs[3]));
    check_store();
  }
  EXPECT_LE(batches().size(), 16u);
  EXPECT_GT(rows("by_worker"), 0u);  // no batch was free
  in_tx([&](kv::Transaction& tx) { registry.remove(tx, worker); });
  EXPECT_EQ(in_tx([&](kv::Transaction& tx) { return queue.counts(tx, "t")[State::pending]; }), 40);
}

TEST_F(WorkerBatches, ConcurrentAcceptsDoNotShareOne) {
  in_tx([&](kv::Transaction& tx) {
    queue.set_type(tx, "u", {});
    for (const char* id : {"x", "y", "z"}) queue.add(tx, "u", id, "{}");
  });
  add(3);
  // Two processes that choose the same batch.
  SeededRng first_rng(7), second_rng(7);
  workers::Registry first_registry(first_rng), second_registry(second_rng);
  Queue first_queue(first_registry, clock, first_rng), second_queue(second_registry, clock, second_rng);
  const auto accept_of = [&](Queue& process, kv::Transaction& tx, const std::string& type) {
    jobs::accept(process, tx, std::vector{type}, {.limit = 3, .worker = worker});
  };
  const auto first = store->begin(), second = store->begin();
  accept_of(first_queue, *first, "t");
  accept_of(second_queue, *second, "u");
  first->commit();
  EXPECT_THROW(second->commit(), kv::Error);
  in_tx([&](kv::Transaction& tx) { accept_of(second_queue, tx, "u"); });
  EXPECT_EQ(batches(), (std::vector<std::int64_t>{2, 2}));
}

TEST_F(WorkerBatches, ConcurrentEndsDoNotConflict) {
  add(3);
  const auto jobs = accept(3);
  const auto first = store->begin(), second = store->begin();
  jobs::finish(queue, *first, jobs[1].attempt());
  jobs::finish(queue, *second, jobs[2].attempt());
  first->commit();
  second->commit();
  EXPECT_TRUE(batches().empty());
}

TEST_F(WorkerBatches, AJobThatRunsAgainIsOnlyInItsNewBatch) {
  add(3);
  const auto before = accept(3);
  in_tx([&](kv::Transaction& tx) { release(queue, tx, before[1].attempt()); });
  add(2, "k");
  const auto again = accept(3);
  ASSERT_EQ(again.size(), 3u);
  EXPECT_EQ(running_ids(), "j0j1j2k0k1");
  EXPECT_EQ(ids_of_worker("", 10), "j0j1j2k0k1");
  EXPECT_EQ(ids_of_worker("j1", 3), "j1j2k0");
  finish(before[2]);
  EXPECT_EQ(ids_of_worker("", 10), "j0j1k0k1");
}

TEST_F(WorkerBatches, RemovedJobsAndTypesLeaveTheirBatch) {
  in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "u", {}); });
  add(3);
  in_tx([&](kv::Transaction& tx) { queue.add(tx, "u", "x", "{}"); });
  const std::vector<std::string> both{"t", "u"};
  const auto jobs = in_tx([&](kv::Transaction& tx) {
    return jobs::accept(queue, tx, both, {.limit = 4, .worker = worker}).jobs;
  });
  ASSERT_EQ(jobs.size(), 4u);
  EXPECT_EQ(batches(), std::vector<std::int64_t>{3});
  in_tx([&](kv::Transaction& tx) { queue.remove(tx, "t", jobs[1].job.id); });
  EXPECT_EQ(batches(), std::vector<std::int64_t>{2});
  in_tx([&](kv::Transaction& tx) { queue.remove_type(tx, "t", true); });
  EXPECT_EQ(batches(), std::vector<std::int64_t>{1});
  finish(jobs[3]);
  EXPECT_TRUE(batches().empty());
}

TEST_F(WorkerBatches, VerifyFindsLowCountersAndMissingNames) {
  add(3);
  const auto jobs = accept(3);
  const auto findings = [&] {
    kv::testing::MapRows rows(*store);
    kv::Findings found;
    Check check(in_tx([](kv::Transaction& tx) { return tx.read_version(); }), found);
    kv::testing::run_checks(rows, {&check});
    return found.kept();
  };
  const std::string count = batch_count_key("role", "w", jobs[1].job.batch);
  const auto changed = [&](const std::string& key, const std::function<void(kv::Transaction&)>& change) {
    const auto before = in_tx([&](kv::Transaction& tx) { return tx.get(key).value(); });
    in_tx(change);
    auto found = findings();
    in_tx([&](kv::Transaction& tx) { tx.set(key, before); });
    return found;
  };
  EXPECT_THAT(changed(count, [&](kv::Transaction& tx) { tx.add(count, -1); }),
              testing::ElementsAre(testing::HasSubstr("2 of its jobs are running")));
  EXPECT_THAT(changed(count, [&](kv::Transaction& tx) { tx.add(count, 1); }), testing::IsEmpty());
  const std::string names = batches_key("role", "w").integer(jobs[1].job.batch).key();
  EXPECT_THAT(changed(names, [&](kv::Transaction& tx) { tx.set(names, {}); }), testing::SizeIs(2));
  EXPECT_THAT(changed(names, [&](kv::Transaction& tx) { tx.set(names, "?"); }),
              testing::ElementsAre(testing::HasSubstr("malformed names of jobs")));
}

TEST_F(WorkerBatches, ADamagedJobIsRemoved) {
  add(3);
  const auto jobs = accept(3);
  in_tx([&](kv::Transaction& tx) { tx.set(JobKey("job").string("t").string("j1").key(), "?"); });
  EXPECT_TRUE(remove_damaged(queue, *store, "t", "j1"));
  EXPECT_EQ(in_tx([&](kv::Transaction& tx) { return queue.counts(tx, "t")[State::running]; }), 2);
  finish(jobs[0]);
  finish(jobs[2]);
  // Its batch is not used again until the worker ends.
  EXPECT_EQ(batches(), std::vector<std::int64_t>{1});
  in_tx([&](kv::Transaction& tx) { registry.remove(tx, worker); });
  EXPECT_EQ(rows("batch"), 0u);
}

TEST_F(WorkerBatches, ABatchWithADamagedJobIsKept) {
  add(3);
  accept(3);
  const std::string header = JobKey("job").string("t").string("j1").key();
  const auto before = in_tx([&](kv::Transaction& tx) { return tx.get(header).value(); });
  in_tx([&](kv::Transaction& tx) { tx.set(header, "?"); });
  in_tx([&](kv::Transaction& tx) { registry.remove(tx, worker); });
  EXPECT_EQ(batches(), std::vector<std::int64_t>{1});
  in_tx([&](kv::Transaction& tx) { tx.set(header, before); });
}

TEST_F(WorkerBatches, ChangesOfJobsThatHaveLeftDoNotConflictWithTheEndOfTheWorker) {
  add(3);
  const auto jobs = accept(3);
  finish(jobs[1]);
  const auto end = store->begin();
  registry.remove(*end, worker);
  in_tx([&](kv::Transaction& tx) { queue.resubmit(tx, "t", "j1"); });
  end->commit();
  EXPECT_EQ(in_tx([&](kv::Transaction& tx) { return queue.counts(tx, "t")[State::pending]; }), 3);
}

TEST_F(WorkerBatches, AnAcceptThatUsesABatchConflictsWithItsRemoval) {
  add(3);
  for (const auto& job : accept(3)) finish(job);
  const auto removal = store->begin();
  std::optional<StoredBatch> unused;
  visit_batches(queue, *removal, JobKey("batch").range(), kv::Isolation::snapshot,
                [&](StoredBatch batch) { unused = std::move(batch); });
  remove_batch(*removal, unused.value());
  for (int i = 0; i < 100 && batches().size() < 16; ++i) {
    add(2, std::to_string(i) + "-");
    accept(2);
  }
  ASSERT_EQ(batches().size(), 16u);
  EXPECT_THROW(removal->commit(), kv::Error);
}

}  // namespace
}  // namespace divan::jobs
