#include "divan/jobs/attempts.h"
#include "divan/jobs/testing.h"

namespace divan::jobs {
namespace {

struct Detach : QueueTest {
  Maintenance maintenance{queue, *store, clock};

  workers::WorkerRef worker;

  void SetUp() override {
    in_tx([&](kv::Transaction& tx) {
      queue.set_type(tx, "t", {.timeout = std::chrono::seconds(30)});
      for (const auto* id : {"a", "b", "c"}) queue.add(tx, "t", id, "{}");
    });
    worker = in_tx([&](kv::Transaction& tx) { return registry.add(tx, "role", "w", "{}"); });
    maintenance.step();
  }
  // The jobs of the worker: one with an entry of its own, the others in a batch.
  std::vector<AcceptedJob> accept() {
    const std::vector<std::string> types{"t"};
    return in_tx([&](kv::Transaction& tx) {
      return jobs::accept(queue, tx, types, {.limit = 10, .worker = worker}).jobs;
    });
  }
  void detach(const Attempt& attempt) {
    in_tx([&](kv::Transaction& tx) { jobs::detach(queue, tx, attempt, R"({"status":202})"); });
  }
  Job job(std::string_view id) {
    return in_tx([&](kv::Transaction& tx) { return *queue.find(tx, "t", id); });
  }
};

TEST_F(Detach, TheJobSurvivesItsWorker) {
  const auto accepted = accept();
  ASSERT_EQ(accepted.size(), 3u);
  for (const auto& each : accepted) detach(each.attempt());
  check_store();
  in_tx([&](kv::Transaction& tx) { registry.remove(tx, worker); });
  for (const auto& each : accepted) {
    EXPECT_EQ(job(each.job.id).state, State::running);
    EXPECT_EQ(job(each.job.id).lock, each.job.lock);
    EXPECT_EQ(job(each.job.id).worker_id, "");
    in_tx([&](kv::Transaction& tx) { finish(queue, tx, each.attempt()); });
    EXPECT_EQ(job(each.job.id).state, State::finished);
  }
}

TEST_F(Detach, ItIsLostIfItIsNotReportedOnInTime) {
  const auto accepted = accept();
  detach(accepted[0].attempt());
  pass(maintenance, std::chrono::seconds(20));
  in_tx([&](kv::Transaction& tx) { update(queue, tx, accepted[0].attempt()); });
  pass(maintenance, std::chrono::seconds(20));
  EXPECT_EQ(job(accepted[0].job.id).state, State::running);
  pass(maintenance, std::chrono::seconds(60));
  EXPECT_EQ(job(accepted[0].job.id).state, State::pending);
  EXPECT_EQ(job(accepted[0].job.id).lost, 1);
  EXPECT_EQ(job(accepted[1].job.id).state, State::running) << "which its worker keeps alive";
}

TEST_F(Detach, OnlyTheOwnerCanDetach) {
  auto attempt = accept()[0].attempt();
  attempt.lock = "other";
  EXPECT_THROW(detach(attempt), LockLost);
}

}  // namespace
}  // namespace divan::jobs
