// Limits of attempts (lost, failed, run time), and a job's own settings.
#include "divan/jobs/attempts.h"
#include "divan/jobs/halts.h"
#include "divan/jobs/history.h"
#include "divan/jobs/maintenance.h"
#include "divan/jobs/rows.h"
#include "divan/jobs/testing.h"
#include "divan/jobs/worker_jobs.h"

namespace divan::jobs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

struct Limits : QueueTest {
  Maintenance maintenance{queue, *store, clock};

  void SetUp() override { set_type({}); }
  void set_type(const TypeSettings& settings) {
    in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "t", settings); });
  }
  void add(std::string_view id, std::string_view limits = "", std::string_view data = "{}") {
    in_tx([&](kv::Transaction& tx) {
      queue.add(tx, "t", id, data, {.limits = limits.empty() ? "" : job_limits(limits)});
    });
  }
  AcceptedJob accept(const AcceptOptions& options = {}) {
    const std::vector<std::string> types{"t"};
    return in_tx([&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, options).jobs.at(0); });
  }
  void lose(const AcceptedJob& job) {
    in_tx([&](kv::Transaction& tx) {
      Job lost = queue.find(tx, "t", job.job.id).value();
      reclaim(queue, tx, lost, Outcome::lost);
    });
  }
  void fail(const AcceptedJob& job, const FailOptions& options = {}) {
    in_tx([&](kv::Transaction& tx) { jobs::fail(queue, tx, job.attempt(), "no", options); });
  }
  void finish(const AcceptedJob& job, std::optional<std::string_view> data = std::nullopt,
              std::optional<std::string_view> result = std::nullopt) {
    in_tx([&](kv::Transaction& tx) { jobs::finish(queue, tx, job.attempt(), data, std::nullopt, result); });
  }
  // Runs the maintenance's steps at the requested times.
  void pass(Duration duration) {
    for (const auto end = clock.now() + duration; clock.now() < end;)
      clock.advance(std::min(maintenance.step(), end) - clock.now());
    maintenance.step();
  }
  Job job(std::string_view id) {
    return in_tx([&](kv::Transaction& tx) { return queue.find(tx, "t", id).value(); });
  }
  std::optional<std::string> result(std::string_view id) {
    return in_tx([&](kv::Transaction& tx) { return queue.result(tx, *queue.find(tx, "t", id)); });
  }
};

TEST_F(Limits, AJobThatIsLostTooOftenIsFailed) {
  add("a");
  for (int i = 1; i < 10; ++i) {
    lose(accept());
    EXPECT_EQ(job("a").state, State::pending);
    EXPECT_EQ(job("a").lost, i);
    clock.advance(seconds(1));
  }
  lose(accept());
  EXPECT_EQ(job("a").state, State::failed);
  EXPECT_THAT(job("a").last_error, HasSubstr("`max_lost` is 10"));
  // After a resubmit it has all its attempts again.
  in_tx([&](kv::Transaction& tx) { queue.resubmit(tx, "t", "a"); });
  EXPECT_EQ(job("a").lost, 0);
  lose(accept());
  EXPECT_EQ(job("a").state, State::pending);
  finish(accept());
  EXPECT_EQ(job("a").lost, 0);
}

TEST_F(Limits, OfLostAttemptsComeFromTheTypeOrTheJob) {
  set_type({.max_lost = 2});
  add("a");
  lose(accept());
  lose(accept());
  EXPECT_EQ(job("a").state, State::failed);
  add("b", R"({"max_lost":1})");
  lose(accept());
  EXPECT_EQ(job("b").state, State::failed);
  add("c", R"({"max_lost":null})");
  for (int i = 0; i < 20; ++i) lose(accept());
  EXPECT_EQ(job("c").state, State::pending);
}

TEST_F(Limits, JobsOfAWorkerThatEndsAreLost) {
  set_type({.max_lost = 1});
  const auto worker = in_tx([&](kv::Transaction& tx) { return registry.add(tx, "r", "w", "{}"); });
  add("a");
  accept({.worker = worker});
  in_tx([&](kv::Transaction& tx) { registry.remove(tx, worker); });
  EXPECT_EQ(job("a").state, State::failed);
}

TEST_F(Limits, AReleasedAttemptDoesNotCount) {
  set_type({.max_attempts = 2, .max_lost = 2});
  add("a");
  for (int i = 0; i < 5; ++i) {
    const auto attempt = accept();
    EXPECT_EQ(attempt.job.attempt, 1);
    in_tx([&](kv::Transaction& tx) {
      i % 2 == 0 ? release(queue, tx, attempt.attempt()) : release(queue, tx, attempt.attempt(), seconds(1));
    });
    EXPECT_EQ(job("a").attempt, 0);
    EXPECT_EQ(job("a").lost, 0);
    clock.advance(seconds(1));
  }
  fail(accept());
  EXPECT_EQ(job("a").attempt, 1);
  clock.advance(seconds(2));
  const auto last = accept();
  EXPECT_EQ(last.job.attempt, 2);
  fail(last);
  EXPECT_EQ(job("a").state, State::failed);
}

TEST_F(Limits, AFailureMayBePermanentOrSetTheDelay) {
  add("a");
  fail(accept(), {.delay = milliseconds(1234)});
  EXPECT_EQ(job("a").state, State::pending);
  EXPECT_EQ(job("a").due_at, clock.wall_ms() + 1234);
  clock.advance(seconds(2));
  fail(accept(), {.retry = false});
  EXPECT_EQ(job("a").state, State::failed);
  EXPECT_EQ(job("a").failures, 2);
  EXPECT_EQ(job("a").last_error, "no");
}

TEST_F(Limits, OfFailuresAndBackoffMayBeSetByTheJob) {
  add("a", R"({"max_attempts":2,"backoff_min":10000,"backoff_max":10000})");
  fail(accept());
  EXPECT_GE(job("a").due_at, clock.wall_ms() + 7500);
  EXPECT_LE(job("a").due_at, clock.wall_ms() + 10'000);
  clock.advance(seconds(10));
  fail(accept());
  EXPECT_EQ(job("a").state, State::failed);
}

TEST_F(Limits, OfAJobAreChecked) {
  for (const char* json :
       {R"({"retention":5})", R"({"timeout":1})", R"({"max_attempts":0})", R"({"max_lost":0})",
        R"({"max_runtime":"long"})", R"({"backoff_min":10,"backoff_max":5})", "[]"})
    EXPECT_THROW(job_limits(json), Error) << json;
  EXPECT_EQ(job_limits("{}"), "");
  EXPECT_EQ(job_limits(R"({"max_attempts":3, "timeout":500})"), R"({"timeout":500,"max_attempts":3})");
  // The type's backoff_max may be below the job's backoff_min.
  const auto own = with_limits({.backoff_max = seconds(2)}, job_limits(R"({"backoff_min":5000})"));
  EXPECT_EQ(own.backoff_max, seconds(5));
}

TEST_F(Limits, OfAJobAreThoseOfItsLastAdd) {
  constexpr std::string_view kLimits = R"({"max_attempts":3})";
  add("a");
  add("a", kLimits);
  EXPECT_EQ(job("a").limits, kLimits);
  in_tx([&](kv::Transaction& tx) { queue.resubmit(tx, "t", "a", clock.wall_ms()); });
  EXPECT_EQ(job("a").limits, kLimits);
  add("a");
  EXPECT_EQ(job("a").limits, "");
  // The same for a running job.
  accept();
  add("a", kLimits);
  EXPECT_EQ(job("a").limits, kLimits);
}

TEST_F(Limits, AJobsTimeoutIsItsOwn) {
  add("short", R"({"timeout":1000})");
  accept();
  add("usual");
  accept();
  add("long", R"({"timeout":600000})");
  accept();
  const auto next = maintenance.step();
  EXPECT_LE(next - clock.now(), milliseconds(250));
  pass(seconds(3));
  EXPECT_EQ(job("short").state, State::pending);
  EXPECT_EQ(job("usual").state, State::running);
  pass(seconds(40));
  EXPECT_EQ(job("usual").state, State::pending);
  EXPECT_EQ(job("long").state, State::running);
}

TEST_F(Limits, AnAttemptEndsAtItsDeadlineAlthoughItsWorkerReports) {
  set_type({.max_runtime = seconds(10)});
  add("a");
  const auto attempt = accept();
  EXPECT_EQ(job("a").deadline, clock.wall_ms() + 10'000);
  for (int i = 0; i < 9; ++i) {
    clock.advance(seconds(1));
    in_tx([&](kv::Transaction& tx) { update(queue, tx, attempt.attempt()); });
    maintenance.step();
    EXPECT_EQ(job("a").state, State::running);
  }
  clock.advance(seconds(1));
  maintenance.step();
  EXPECT_EQ(job("a").state, State::pending);
  EXPECT_EQ(job("a").failures, 1);
  EXPECT_EQ(job("a").deadline, 0);
  EXPECT_THAT(job("a").last_error, HasSubstr("`max_runtime` of 10000 ms"));
  EXPECT_THROW(in_tx([&](kv::Transaction& tx) { update(queue, tx, attempt.attempt()); }), Error);
  // A job's own limit; the next step is at its deadline at the latest.
  add("b", R"({"max_runtime":500})");
  accept();
  EXPECT_LE(maintenance.step() - clock.now(), milliseconds(500));
  clock.advance(milliseconds(500));
  maintenance.step();
  EXPECT_EQ(job("b").state, State::pending);
}

TEST_F(Limits, ShortDeadlinesAreCheckedOften) {
  set_type({.max_runtime = seconds(1)});
  EXPECT_LE(maintenance.step() - clock.now(), milliseconds(250));
}

TEST_F(Limits, AnAttemptThatEndsInTimeLeavesNoDeadline) {
  set_type({.max_runtime = seconds(10)});
  for (const char* id : {"a", "b", "c", "d", "e"}) add(id);
  finish(accept());
  EXPECT_EQ(job("a").deadline, 0);
  fail(accept());
  lose(accept());
  const auto attempt = accept();
  in_tx([&](kv::Transaction& tx) { release(queue, tx, attempt.attempt()); });
  in_tx([&](kv::Transaction& tx) { queue.remove(tx, "t", "d"); });
  const auto left =
      in_tx([](kv::Transaction& tx) { return tx.get_range(JobKey("deadline").range(), {}).rows; });
  EXPECT_TRUE(left.empty());
}

TEST_F(Limits, TheEndIsReportedToTheWorkersConnection) {
  set_type({.max_runtime = seconds(10)});
  const auto worker = in_tx([&](kv::Transaction& tx) { return registry.add(tx, "r", "w", "{}"); });
  const auto take = [&] { return in_tx([](kv::Transaction& tx) { return take_halts(tx, "r", "w"); }); };
  const auto overrun = [&](const std::string& id) {
    add(id);
    const auto attempt = accept({.worker = worker});
    clock.advance(seconds(11));
    maintenance.step();
    EXPECT_EQ(job(id).state, State::pending);
    return attempt;
  };
  // Without a connection no halt is written.
  overrun("a");
  EXPECT_TRUE(take().empty());
  in_tx([&](kv::Transaction& tx) { registry.hold(tx, worker); });
  const auto watch = in_tx([](kv::Transaction& tx) { return watch_halts(tx, "r", "w"); });
  in_tx([&](kv::Transaction& tx) { queue.remove(tx, "t", "a"); });
  const auto attempt = overrun("b");
  EXPECT_TRUE(watch->fired());
  const auto halts = take();
  ASSERT_EQ(halts.size(), 1u);
  EXPECT_EQ(halts[0].attempt.id, "b");
  EXPECT_EQ(halts[0].attempt.lock, attempt.job.lock);
  EXPECT_EQ(halts[0].epoch, attempt.job.epoch);
  EXPECT_THAT(halts[0].reason, HasSubstr("max_runtime"));
  EXPECT_TRUE(take().empty());
  // Halts are cleared when the worker ends.
  in_tx([&](kv::Transaction& tx) { queue.remove(tx, "t", "b"); });
  overrun("c");
  in_tx([&](kv::Transaction& tx) { registry.remove(tx, worker); });
  EXPECT_TRUE(take().empty());
  const auto left = in_tx([](kv::Transaction& tx) { return tx.get_range(JobKey("halt").range(), {}).rows; });
  EXPECT_TRUE(left.empty()) << "including the counter";
}

TEST_F(Limits, AResultIsKeptBesideTheData) {
  add("a", "", R"({"n":1})");
  finish(accept(), std::nullopt, R"({"done":true})");
  EXPECT_EQ(result("a"), R"({"done":true})");
  // It runs again with its data, and has no result of this run yet.
  in_tx([&](kv::Transaction& tx) { queue.resubmit(tx, "t", "a"); });
  EXPECT_EQ(result("a"), std::nullopt);
  const auto again = accept();
  EXPECT_EQ(again.data, R"({"n":1})");
  // A finish may replace its data.
  const std::string large = "\"" + std::string(300'000, 'x') + "\"";
  finish(again, "2", large);
  EXPECT_EQ(result("a"), large);
  EXPECT_EQ(in_tx([&](kv::Transaction& tx) { return queue.data(tx, *queue.find(tx, "t", "a")); }), "2");
  EXPECT_THAT(job_json(job("a"), {.result = "5"}), HasSubstr(R"("result":5)"));
  in_tx([&](kv::Transaction& tx) { queue.remove(tx, "t", "a"); });
  EXPECT_TRUE(
      in_tx([](kv::Transaction& tx) { return tx.get_range(JobKey("result").range(), {}).rows; }).empty());
}

// A run that ends without a result removes the earlier one, also if the run was requested while another one
// ran.
TEST_F(Limits, AResultIsThatOfTheLastRun) {
  add("a");
  const auto first = accept();
  in_tx([&](kv::Transaction& tx) { queue.resubmit(tx, "t", "a"); });
  const std::string large = "\"" + std::string(300'000, 'x') + "\"";
  finish(first, std::nullopt, large);
  EXPECT_EQ(job("a").state, State::pending);
  EXPECT_EQ(result("a"), large);
  finish(accept());
  EXPECT_EQ(result("a"), std::nullopt);
}

TEST_F(Limits, FailedJobsHaveARetentionOfTheirOwn) {
  set_type({.max_attempts = 1, .retention = seconds(10), .retention_failed = seconds(100)});
  for (const char* id : {"a", "b"}) add(id);
  finish(accept());
  fail(accept());
  clock.advance(seconds(50));
  maintenance.step();
  EXPECT_FALSE(in_tx([&](kv::Transaction& tx) { return queue.find(tx, "t", "a"); }));
  EXPECT_EQ(job("b").state, State::failed);
  clock.advance(seconds(60));
  maintenance.step();
  EXPECT_FALSE(in_tx([&](kv::Transaction& tx) { return queue.find(tx, "t", "b"); }));
}

TEST_F(Limits, FailedJobsArePrunedSoonAfterAShortRetention) {
  set_type({.max_attempts = 1, .retention_failed = seconds(1)});
  maintenance.step();
  add("a");
  fail(accept());
  clock.advance(seconds(2));
  maintenance.step();
  EXPECT_FALSE(in_tx([&](kv::Transaction& tx) { return queue.find(tx, "t", "a"); }));
}

}  // namespace
}  // namespace divan::jobs
