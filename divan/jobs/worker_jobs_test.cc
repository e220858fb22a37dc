#include "divan/jobs/worker_jobs.h"

#include "divan/jobs/attempts.h"
#include "divan/jobs/maintenance.h"
#include "divan/jobs/rows.h"
#include "divan/jobs/testing.h"

namespace divan::jobs {
namespace {

constexpr std::size_t kMany = 600;  // more than one transaction reclaims

struct WorkerJobs : QueueTest {
  Maintenance maintenance{queue, *store, clock};
  const std::vector<std::string> types{"t"};

  void SetUp() override {
    in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "t", {}); });
    maintenance.step();
  }
  workers::WorkerRef register_worker() {
    return in_tx([&](kv::Transaction& tx) { return registry.add(tx, "role", "w", "{}"); });
  }
  void unregister(const workers::WorkerRef& worker) {
    in_tx([&](kv::Transaction& tx) { registry.remove(tx, worker); });
  }
  void add(std::size_t jobs, std::string_view data = "{}") {
    in_tx([&](kv::Transaction& tx) {
      for (std::size_t i = 0; i < jobs; ++i) queue.add(tx, "t", std::nullopt, data);
    });
  }
  std::vector<AcceptedJob> accept(const workers::WorkerRef& worker) {
    return in_tx([&](kv::Transaction& tx) {
      return jobs::accept(queue, tx, types, {.limit = kMaxAcceptLimit, .worker = worker}).jobs;
    });
  }
  std::int64_t count(State state) {
    return in_tx([&](kv::Transaction& tx) { return queue.counts(tx, "t")[state]; });
  }
  std::size_t notes() {
    return in_tx([&](kv::Transaction& tx) { return tx.get_range(JobKey("left").range()).rows.size(); });
  }
};

TEST_F(WorkerJobs, ManyJobsOfAWorkerAreReclaimedInBatches) {
  add(kMany);
  const auto worker = register_worker();
  ASSERT_EQ(accept(worker).size(), kMany);
  unregister(worker);
  EXPECT_EQ(count(State::pending), 250);
  EXPECT_EQ(notes(), 1u);
  maintenance.step();
  EXPECT_EQ(count(State::pending), static_cast<std::int64_t>(kMany));
  EXPECT_EQ(notes(), 0u);
}

TEST_F(WorkerJobs, TheJobsOfAWorker) {
  in_tx([&](kv::Transaction& tx) {
    queue.set_type(tx, "other", {});
    for (const auto* id : {"a", "b", "c", "d"}) queue.add(tx, "t", id, "{}");
    queue.add(tx, "other", "x", "{}");
  });
  const auto worker = register_worker();
  const auto other = in_tx([&](kv::Transaction& tx) { return registry.add(tx, "role", "w2", "{}"); });
  const auto take = [&](const workers::WorkerRef& ref, const std::string& type, std::size_t limit) {
    in_tx([&](kv::Transaction& tx) {
      jobs::accept(queue, tx, std::vector{type}, {.limit = limit, .worker = ref});
    });
  };
  const auto listed = [&](std::string_view id, std::string_view type, std::string_view start,
                          std::size_t limit) {
    std::string ids;
    in_tx([&](kv::Transaction& tx) {
      ids.clear();
      for (const auto& job : jobs_of_worker(queue, tx, "role", id, type, start, limit)) {
        EXPECT_EQ(job.state, State::running);
        ids += job.id;
      }
    });
    return ids;
  };
  take(worker, "t", 3);
  take(other, "t", 1);
  take(worker, "other", 1);
  EXPECT_EQ(listed("w", "t", "", 10), "abc");
  EXPECT_EQ(listed("w", "t", "b", 10), "bc");
  EXPECT_EQ(listed("w", "t", "", 2), "ab");
  EXPECT_EQ(listed("w", "other", "", 10), "x");
  EXPECT_EQ(listed("w2", "t", "", 10), "d");
  EXPECT_EQ(listed("nobody", "t", "", 10), "");
}

TEST_F(WorkerJobs, TheMaintenanceIsNotifiedOfThem) {
  Maintenance own(queue, *store, clock);
  own.start();
  add(kMany);
  const auto worker = register_worker();
  ASSERT_EQ(accept(worker).size(), kMany);
  unregister(worker);
  while (count(State::pending) < static_cast<std::int64_t>(kMany)) std::this_thread::yield();
}

TEST_F(WorkerJobs, UntilItIsReclaimedAJobBelongsToItsAttempt) {
  add(kMany);
  const auto worker = register_worker();
  const auto jobs = accept(worker);
  unregister(worker);
  std::size_t halted = 0;
  for (const auto& job : jobs) {
    try {
      in_tx([&](kv::Transaction& tx) { finish(queue, tx, job.attempt()); });
    } catch (const Error& error) {
      EXPECT_EQ(error.name(), "halt");
      ++halted;
    }
  }
  EXPECT_EQ(halted, 250u);
  maintenance.step();
  EXPECT_EQ(count(State::finished), static_cast<std::int64_t>(kMany - 250));
  EXPECT_EQ(count(State::pending), 250);
}

TEST_F(WorkerJobs, JobsOfALaterWorkerOfTheSameNameAreKept) {
  add(kMany);
  const auto old = register_worker();
  accept(old);
  const auto present = register_worker();  // with the name of the other
  const auto jobs = accept(present);
  EXPECT_EQ(jobs.size(), 250u);
  maintenance.step();
  EXPECT_EQ(count(State::running), 250);
  for (const auto& job : jobs) in_tx([&](kv::Transaction& tx) { finish(queue, tx, job.attempt()); });
  EXPECT_EQ(count(State::pending), static_cast<std::int64_t>(kMany - 250));
}

TEST_F(WorkerJobs, JobsLeftByTwoAreReclaimed) {
  queue.set_reclaimed_at_once(2);
  add(3);
  accept(register_worker());
  const auto second = register_worker();
  add(3);
  accept(second);
  register_worker();
  maintenance.step();
  EXPECT_EQ(count(State::pending), 6);
  EXPECT_EQ(notes(), 0u);
}

TEST_F(WorkerJobs, JobsLeftDuringAReclaimAreReclaimed) {
  queue.set_reclaimed_at_once(2);
  const auto add_named = [&](const std::string& prefix) {
    in_tx([&](kv::Transaction& tx) {
      for (int i = 0; i < 5; ++i) queue.add(tx, "t", prefix + std::to_string(i), "{}");
    });
  };
  add_named("m");
  accept(register_worker());
  const auto second = register_worker();
  add_named("a");  // before the others
  EXPECT_EQ(accept(second).size(), 7u);
  // After its jobs were skipped, the second worker ends, too.
  EventfulStore eventful(*store, 3, [&] { unregister(second); });
  reclaim_left(queue, eventful);
  EXPECT_EQ(notes(), 1u);
  reclaim_left(queue, *store);
  EXPECT_EQ(notes(), 0u);
  EXPECT_EQ(count(State::pending), 10);
}

TEST_F(WorkerJobs, LargeDataDoNotPreventAWorkersEnd) {
  const std::string large = "\"" + std::string(6'000'000, 'x') + "\"";
  for (const char* id : {"a", "b", "c"}) {
    in_tx([&](kv::Transaction& tx) { queue.add(tx, "t", id, large); });
  }
  const auto worker = register_worker();
  while (!accept(worker).empty()) {}
  for (const char* id : {"a", "b", "c"}) {
    in_tx([&](kv::Transaction& tx) { queue.cancel(tx, "t", id); });
    in_tx([&](kv::Transaction& tx) { queue.add(tx, "t", id, large); });
  }
  unregister(worker);
  maintenance.step();
  EXPECT_EQ(count(State::pending), 3);
}

TEST_F(WorkerJobs, LongNamesAndErrorsDoNotPreventAWorkersEnd) {
  const std::string role(workers::kMaxNameBytes, 'r'), error(kMaxErrorBytes, '\0');
  const auto worker = in_tx([&](kv::Transaction& tx) { return registry.add(tx, role, role, "{}"); });
  std::vector<Attempt> attempts;
  for (int i = 0; i < 250; ++i) {
    const std::string id = std::string(kMaxNameBytes - 4, '\1') + std::to_string(1000 + i);
    in_tx([&](kv::Transaction& tx) { queue.add(tx, "t", id, "{}"); });
    if (i % 2 != 0) continue;
    const auto failing =
        in_tx([&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, {}).jobs.at(0); });
    in_tx([&](kv::Transaction& tx) { fail(queue, tx, failing.attempt(), error); });
  }
  clock.advance(std::chrono::hours(1));
  while (!in_tx([&](kv::Transaction& tx) {
    return jobs::accept(queue, tx, types, {.limit = 50, .worker = worker}).jobs.empty();
  })) {}
  EXPECT_EQ(count(State::running), 250);
  unregister(worker);
  maintenance.step();
  EXPECT_EQ(count(State::pending), 250);
}

TEST_F(WorkerJobs, ADamagedJobDoesNotPreventOthersFromBeingReclaimed) {
  add(3);
  const auto worker = register_worker();
  const auto jobs = accept(worker);
  const std::string header = JobKey("job").string("t").string(jobs[1].job.id).key();
  std::string before;
  in_tx([&](kv::Transaction& tx) {
    before = tx.get(header).value();
    tx.set(header, "what is this");
  });
  unregister(worker);
  EXPECT_EQ(count(State::pending), 2);
  in_tx([&](kv::Transaction& tx) { tx.set(header, before); });
  EXPECT_EQ(count(State::running), 1);
}

}  // namespace
}  // namespace divan::jobs
