// Requests during a run, and the position of a job that returns to the queue.

#include <fmt/core.h>

#include "divan/jobs/attempts.h"
#include "divan/jobs/maintenance.h"
#include "divan/jobs/testing.h"

namespace divan::jobs {
namespace {

using testing::ElementsAre;

constexpr std::string_view kFirstData = R"({"n":1})";
constexpr std::string_view kSecondData = R"({"n":2})";
constexpr std::string_view kThirdData = R"({"n":3})";

struct ResubmittedJobs : QueueTest {
  void SetUp() override {
    in_tx([&](kv::Transaction& tx) {
      queue.set_type(tx, "t", {.max_attempts = 2, .backoff_min = Duration(), .backoff_max = Duration()});
    });
  }
  // Returns true if it wrote anything.
  bool add(std::string_view data, const Queue::AddOptions& options = {}, std::string_view id = "a") {
    return in_tx([&](kv::Transaction& tx) {
      queue.add(tx, "t", id, data, options);
      return !tx.read_only();
    });
  }
  bool resubmit(std::int64_t at = 0) {
    return in_tx([&](kv::Transaction& tx) {
      queue.resubmit(tx, "t", "a", at);
      return !tx.read_only();
    });
  }
  void cancel() {
    in_tx([&](kv::Transaction& tx) { queue.cancel(tx, "t", "a"); });
  }
  std::vector<AcceptedJob> accept(const AcceptOptions& options = {}) {
    const std::vector<std::string> types{"t"};
    return in_tx([&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, options).jobs; });
  }
  AcceptedJob accept_one() { return accept().at(0); }
  void finish(const AcceptedJob& job) {
    in_tx([&](kv::Transaction& tx) { jobs::finish(queue, tx, job.attempt()); });
  }
  void fail(const AcceptedJob& job) {
    in_tx([&](kv::Transaction& tx) { jobs::fail(queue, tx, job.attempt(), "broken"); });
  }
  void release(const AcceptedJob& job) {
    in_tx([&](kv::Transaction& tx) { jobs::release(queue, tx, job.attempt()); });
  }
  void lose(const AcceptedJob& job) {
    in_tx([&](kv::Transaction& tx) {
      Job lost = queue.find(tx, "t", job.job.id).value();
      reclaim(queue, tx, lost, Outcome::lost);
    });
  }
  Job job(std::string_view id = "a") {
    return in_tx([&](kv::Transaction& tx) { return queue.find(tx, "t", id).value(); });
  }
  std::string state() { return std::string(state_name(job().state)); }
  // The data of all runs from now on.
  std::vector<std::string> runs() {
    std::vector<std::string> data;
    for (auto jobs = accept(); !jobs.empty(); jobs = accept()) {
      data.push_back(jobs[0].data);
      finish(jobs[0]);
    }
    return data;
  }
};

TEST_F(ResubmittedJobs, AnAttemptThatDidNotFinishIsRepeatedBeforeTheNextRun) {
  using Ending = void (ResubmittedJobs::*)(const AcceptedJob&);
  for (const Ending ending : {&ResubmittedJobs::fail, &ResubmittedJobs::release, &ResubmittedJobs::lose}) {
    add(kFirstData);
    const auto attempt = accept_one();
    add(kSecondData);
    (this->*ending)(attempt);
    EXPECT_THAT(runs(), ElementsAre(kFirstData, kSecondData));
    EXPECT_EQ(state(), "finished");
  }
}

TEST_F(ResubmittedJobs, TheNextRunComesAtItsTime) {
  add(kFirstData);
  const auto attempt = accept_one();
  add(kSecondData, {.scheduled_at = kNow + 5000});
  release(attempt);
  EXPECT_THAT(runs(), ElementsAre(kFirstData));
  EXPECT_EQ(job().due_at, kNow + 5000);
  clock.advance(std::chrono::seconds(5));
  EXPECT_THAT(runs(), ElementsAre(kSecondData));
}

TEST_F(ResubmittedJobs, AfterItsLastFailureTheNextRunHasAllItsAttempts) {
  add(kFirstData);
  fail(accept_one());
  const auto last = accept_one();
  add(kSecondData);
  fail(last);
  EXPECT_EQ(state(), "pending");
  EXPECT_EQ(job().failures, 0);
  const auto next = accept_one();
  EXPECT_EQ(next.data, kSecondData);
  fail(next);
  EXPECT_EQ(state(), "pending");
  fail(accept_one());
  EXPECT_EQ(state(), "failed");
}

TEST_F(ResubmittedJobs, AddingAPendingOneThatIsToRunAgainLeavesOneRun) {
  add(kFirstData);
  const auto attempt = accept_one();
  add(kSecondData);
  release(attempt);
  EXPECT_TRUE(add(kThirdData));
  EXPECT_FALSE(add(kThirdData));
  EXPECT_THAT(runs(), ElementsAre(kThirdData));
}

TEST_F(ResubmittedJobs, ResubmittingAPendingOneMovesIt) {
  add(kFirstData);
  const auto attempt = accept_one();
  add(kSecondData);
  release(attempt);
  EXPECT_TRUE(resubmit(kNow + 5000));
  EXPECT_FALSE(resubmit(kNow + 5000));
  EXPECT_THAT(runs(), ElementsAre());
  clock.advance(std::chrono::seconds(5));
  EXPECT_THAT(runs(), ElementsAre(kFirstData, kSecondData));
}

TEST_F(ResubmittedJobs, CancelEndsItAlthoughItWasResubmitted) {
  add(kFirstData);
  auto attempt = accept_one();
  add(kSecondData);
  cancel();
  EXPECT_FALSE(job().resubmit);
  finish(attempt);
  EXPECT_EQ(state(), "cancelled");
  // The same while it waits for another attempt.
  add(kFirstData);
  attempt = accept_one();
  add(kSecondData);
  release(attempt);
  cancel();
  EXPECT_EQ(state(), "cancelled");
  EXPECT_FALSE(job().resubmit);
  EXPECT_THAT(runs(), ElementsAre());
}

TEST_F(ResubmittedJobs, ARequestAfterACancelRuns) {
  using Ending = void (ResubmittedJobs::*)(const AcceptedJob&);
  for (const Ending ending : {&ResubmittedJobs::finish, &ResubmittedJobs::fail, &ResubmittedJobs::release,
                              &ResubmittedJobs::lose}) {
    add(kFirstData);
    const auto attempt = accept_one();
    cancel();
    add(kSecondData);
    (this->*ending)(attempt);
    EXPECT_THAT(runs(), ElementsAre(kSecondData));
    // A job that is cancelled again does not run.
    const auto other = (add(kFirstData), accept_one());
    cancel();
    add(kSecondData);
    cancel();
    (this->*ending)(other);
    EXPECT_EQ(state(), "cancelled");
  }
}

TEST_F(ResubmittedJobs, AReleasedJobKeepsItsPositionAndALostOneIsBehindDueJobs) {
  add(kFirstData);
  const auto first = accept_one();
  clock.advance(std::chrono::seconds(1));
  add(kFirstData, {}, "b");
  clock.advance(std::chrono::seconds(1));
  release(first);
  const auto again = accept_one();
  EXPECT_EQ(again.job.id, "a");
  lose(again);
  EXPECT_EQ(accept_one().job.id, "b");
  EXPECT_EQ(accept_one().job.id, "a");
}

TEST_F(ResubmittedJobs, AJobThatReturnsKeepsItsTime) {
  add(kFirstData, {.scheduled_at = kNow - 500});
  lose(accept_one());
  EXPECT_EQ(job().scheduled_at, kNow - 500);
  EXPECT_EQ(job().due_at, kNow);
  // A job that was accepted before its time waits for its time again.
  add(kFirstData, {.scheduled_at = kNow + 500}, "b");
  for (const auto& early : accept({.limit = 2, .max_scheduled_at = kNow + 500})) lose(early);
  EXPECT_EQ(job("b").due_at, kNow + 500);
}

TEST_F(ResubmittedJobs, WithoutDataTheNextRunHasTheDataOfTheCurrentOne) {
  add(kFirstData);
  const auto attempt = accept_one();
  resubmit();
  in_tx([&](kv::Transaction& tx) { jobs::update(queue, tx, attempt.attempt(), kSecondData); });
  in_tx([&](kv::Transaction& tx) { jobs::finish(queue, tx, attempt.attempt(), kThirdData); });
  const auto next = accept_one();
  EXPECT_EQ(next.data, kThirdData);
  // Given data is not changed by the current run.
  resubmit();
  add(kFirstData);
  resubmit(kNow + 1);
  in_tx([&](kv::Transaction& tx) { jobs::finish(queue, tx, next.attempt(), kSecondData); });
  clock.advance(std::chrono::milliseconds(1));
  EXPECT_THAT(runs(), ElementsAre(kFirstData));
}

TEST_F(ResubmittedJobs, DataOfManyRunsAlternateBetweenSlots) {
  const auto large = [](char c) { return "\"" + std::string(300'000, c) + "\""; };
  add(large('a'));
  for (const char c : {'b', 'c', 'd'}) {
    const auto attempt = accept_one();
    add(large(c));
    EXPECT_EQ(attempt.data, large(static_cast<char>(c - 1)));
    finish(attempt);
  }
  const auto last = accept_one();
  EXPECT_EQ(last.data, large('d'));
  in_tx([&](kv::Transaction& tx) { jobs::finish(queue, tx, last.attempt(), kFirstData); });
  EXPECT_EQ(in_tx([&](kv::Transaction& tx) { return queue.data(tx, job()); }), kFirstData);
}

TEST_F(ResubmittedJobs, TheEndOfARunMovesNoData) {
  add("\"" + std::string(7'000'000, 'x') + "\"");
  const auto attempt = accept_one();
  add("\"" + std::string(7'000'000, 'y') + "\"");
  in_tx([&](kv::Transaction& tx) {
    jobs::finish(queue, tx, attempt.attempt());
    EXPECT_LT(tx.approximate_size(), 50'000u);
  });
}

TEST_F(ResubmittedJobs, RequestsDuringARunDoNotCountAsReports) {
  Maintenance maintenance(queue, *store, clock);
  add(kFirstData);
  accept_one();
  for (int n = 0; n < 3; ++n) {
    pass(maintenance, std::chrono::seconds(9));
    add(fmt::format(R"({{"n":{}}})", n));
    resubmit(kNow + n);
  }
  pass(maintenance, std::chrono::seconds(4));
  EXPECT_EQ(state(), "pending");
  EXPECT_TRUE(job().resubmit);
}

TEST_F(ResubmittedJobs, TimesBefore1970AreRejected) {
  EXPECT_THROW(add(kFirstData, {.scheduled_at = -1}), Error);
  add(kFirstData);
  accept_one();
  EXPECT_THROW(add(kSecondData, {.scheduled_at = -1}), Error);
  EXPECT_THROW(resubmit(-1), Error);
}

// The test case of couch_jobs, with times in the past.
TEST_F(ResubmittedJobs, TimesInThePastAreTimes) {
  add(kFirstData, {.scheduled_at = 5000}, "first");
  add(kFirstData, {.scheduled_at = 3000}, "second");
  EXPECT_TRUE(accept({.max_scheduled_at = 1000}).empty());
  EXPECT_EQ(accept({.max_scheduled_at = 3000}).at(0).job.id, "second");
  EXPECT_EQ(accept({.max_scheduled_at = 9000}).at(0).job.id, "first");
}

}  // namespace
}  // namespace divan::jobs
