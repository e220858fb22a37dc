#include <fmt/core.h>

#include <future>

#include "divan/jobs/acceptor.h"
#include "divan/jobs/maintenance.h"
#include "divan/jobs/rows.h"
#include "divan/jobs/testing.h"
#include "divan/kv/forwarding.h"
#include "divan/workers/monitor.h"

namespace divan::jobs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Jobs : QueueTest {
  void SetUp() override {
    in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "t", {}); });
  }

  bool add(std::string_view id, std::string_view data = "{}", const Queue::AddOptions& options = {}) {
    return in_tx([&](kv::Transaction& tx) { return queue.add(tx, "t", id, data, options).created; });
  }
  std::vector<AcceptedJob> accept(const AcceptOptions& options = {}) {
    const std::vector<std::string> types{"t"};
    return in_tx([&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, options).jobs; });
  }
  AcceptedJob accept_one() {
    auto jobs = accept();
    if (jobs.empty()) throw std::runtime_error("nothing to accept");
    return jobs.front();
  }
  Job job(std::string_view id) {
    return in_tx([&](kv::Transaction& tx) { return queue.find(tx, "t", id).value(); });
  }
  std::string data(std::string_view id) {
    return in_tx([&](kv::Transaction& tx) { return queue.data(tx, *queue.find(tx, "t", id)); });
  }
  State state(std::string_view id) { return job(id).state; }
  void finish(const AcceptedJob& job, std::optional<std::string_view> data = std::nullopt) {
    in_tx([&](kv::Transaction& tx) { jobs::finish(queue, tx, job.attempt(), data); });
  }
  void fail(const AcceptedJob& job) {
    in_tx([&](kv::Transaction& tx) { jobs::fail(queue, tx, job.attempt(), "broken"); });
  }
  UpdateResult update(const AcceptedJob& job, std::optional<std::string_view> progress = std::nullopt) {
    return in_tx(
        [&](kv::Transaction& tx) { return jobs::update(queue, tx, job.attempt(), std::nullopt, progress); });
  }
  std::int64_t count(State state) {
    return in_tx([&](kv::Transaction& tx) { return queue.counts(tx, "t")[state]; });
  }
  std::string error_of(const std::function<void()>& fn) {
    try {
      fn();
    } catch (const Error& error) { return error.name(); }
    return "no error";
  }
};

TEST_F(Jobs, ATypeMustBeDeclaredFirst) {
  EXPECT_EQ(error_of([&] { in_tx([&](kv::Transaction& tx) { queue.add(tx, "none", "a", "{}"); }); }),
            "no_such_job_type");
  EXPECT_EQ(in_tx([&](kv::Transaction& tx) { return queue.types(tx); }), (std::vector<std::string>{"t"}));
  add("a");
  EXPECT_EQ(error_of([&] { in_tx([&](kv::Transaction& tx) { queue.remove_type(tx, "t", false); }); }),
            "conflict");
  in_tx([&](kv::Transaction& tx) { queue.remove_type(tx, "t", true); });
  EXPECT_TRUE(in_tx([&](kv::Transaction& tx) { return queue.types(tx); }).empty());
  EXPECT_EQ(error_of([&] { in_tx([&](kv::Transaction& tx) { queue.type(tx, "t"); }); }), "no_such_job_type");
}

TEST_F(Jobs, TheServersOwnTypeCannotBeRemovedAndIsDeclaredIfItIsMissing) {
  in_tx([&](kv::Transaction& tx) { queue.remove_type(tx, "t", true); });
  TypeSettings settings;
  settings.max_attempts = 7;
  queue.set_own_type("t", settings);
  add("a");
  EXPECT_EQ(in_tx([&](kv::Transaction& tx) { return queue.type(tx, "t"); }).max_attempts, 7);
  for (const bool force : {false, true}) {
    EXPECT_EQ(error_of([&] { in_tx([&](kv::Transaction& tx) { queue.remove_type(tx, "t", force); }); }),
              "forbidden");
  }
  EXPECT_EQ(accept().size(), 1u);
}

TEST_F(Jobs, AJobThatIsAcceptedWhileItsTypeIsRemovedLeavesNoEntry) {
  const auto worker = in_tx([&](kv::Transaction& tx) { return registry.add(tx, "role", "w1", "{}"); });
  add("a");
  const auto removal = store->begin();
  queue.remove_type(*removal, "t", true);
  EXPECT_EQ(accept({.worker = worker}).size(), 1u);
  EXPECT_THROW(removal->commit(), kv::Error);
  in_tx([&](kv::Transaction& tx) { queue.remove_type(tx, "t", true); });
  in_tx([&](kv::Transaction& tx) { EXPECT_TRUE(tx.get_range(JobKey("by_worker").range()).rows.empty()); });
}

TEST_F(Jobs, TextsThatAreNotUtf8AreRejected) {
  EXPECT_EQ(error_of([&] { in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "t\xff", {}); }); }),
            "bad_request");
  EXPECT_EQ(error_of([&] { add("a\xff"); }), "bad_request");
  add("a");
  const auto accepted = accept_one();
  EXPECT_EQ(error_of([&] { update(accepted, "\"\xff\""); }), "bad_request");
  finish(accepted);
}

TEST_F(Jobs, SettingsAreCheckedAndKept) {
  const auto settings = parse_settings(R"({"timeout":1000,"max_attempts":3,"paused":true})");
  EXPECT_EQ(parse_settings(settings_json(settings)), settings);
  for (const std::string_view bad :
       {"[]", R"({"timeout":1})", R"({"timeout":"x"})", R"({"max_attempts":0})", R"({"paused":1})",
        R"({"zing":1})", R"({"backoff_min":10,"backoff_max":5})"}) {
    EXPECT_EQ(error_of([&] { parse_settings(bad); }), "bad_request") << bad;
  }
}

TEST_F(Jobs, AddAcceptFinish) {
  EXPECT_TRUE(add("a", R"({"n":1})"));
  EXPECT_EQ(count(State::pending), 1);
  const auto accepted = accept_one();
  EXPECT_EQ(accepted.job.id, "a");
  EXPECT_EQ(accepted.data, R"({"n":1})");
  EXPECT_EQ(accepted.job.attempt, 1);
  EXPECT_EQ(accepted.job.lock.size(), 32u);
  EXPECT_EQ(state("a"), State::running);
  EXPECT_TRUE(accept().empty());
  finish(accepted, R"({"n":2})");
  EXPECT_EQ(state("a"), State::finished);
  EXPECT_EQ(data("a"), R"({"n":2})");
  EXPECT_EQ(count(State::finished), 1);
  EXPECT_EQ(error_of([&] { finish(accepted); }), "halt");
}

TEST_F(Jobs, AddingTheSameAgainWritesNothing) {
  add("a", "{}", {.scheduled_at = 5});
  auto tx = store->begin();
  EXPECT_FALSE(queue.add(*tx, "t", "a", "{}", {.scheduled_at = 5}).created);
  tx->commit();
  EXPECT_EQ(tx->committed_version(), -1);
  add("a", R"({"new":1})", {.scheduled_at = 5, .priority = 3});
  EXPECT_EQ(data("a"), R"({"new":1})");
  EXPECT_EQ(job("a").priority, 3);
  EXPECT_EQ(count(State::pending), 1);
}

TEST_F(Jobs, AJobWithoutAnIdGetsAUuid) {
  const auto id = in_tx([&](kv::Transaction& tx) { return queue.add(tx, "t", std::nullopt, "{}").id; });
  EXPECT_EQ(id.size(), 32u);
  EXPECT_EQ(state(id), State::pending);
}

TEST_F(Jobs, OrderIsPriorityThenTime) {
  add("late", "{}", {.priority = 5});
  clock.advance(milliseconds(1));
  add("second");
  clock.advance(milliseconds(1));
  add("a-third");
  clock.advance(milliseconds(1));
  add("first", "{}", {.priority = -1});
  std::string order;
  for (const auto& job : accept({.limit = 3})) order += job.job.id + " ";
  for (const auto& job : accept({.limit = 3})) order += job.job.id + " ";
  EXPECT_EQ(order, "first second a-third late ");
}

TEST_F(Jobs, FutureJobsWaitAndDoNotHideOthers) {
  const auto now = clock.wall_ms();
  add("future", "{}", {.scheduled_at = now + 5000, .priority = -1});
  add("near", "{}", {.scheduled_at = now + 3000});
  EXPECT_TRUE(accept().empty());
  const std::vector<std::string> types{"t"};
  EXPECT_EQ(in_tx([&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, {}).next_due_at; }),
            now + 3000);
  EXPECT_TRUE(accept({.max_scheduled_at = now + 1000}).empty());
  EXPECT_EQ(accept({.max_scheduled_at = now + 3000}).at(0).job.id, "near");
  EXPECT_EQ(accept({.max_scheduled_at = now + 9000}).at(0).job.id, "future");
}

TEST_F(Jobs, TheEpochOnlyGrows) {
  add("a");
  std::int64_t epoch = 0;
  for (int i = 0; i < 3; ++i) {
    const auto accepted = accept_one();
    EXPECT_GT(accepted.job.epoch, epoch);
    epoch = accepted.job.epoch;
    in_tx([&](kv::Transaction& tx) { release(queue, tx, accepted.attempt()); });
  }
  in_tx([&](kv::Transaction& tx) { queue.remove(tx, "t", "a"); });
  add("a");
  EXPECT_GT(accept_one().job.epoch, epoch);
}

TEST_F(Jobs, AddingARunningJobRunsItAgainWithTheNewData) {
  add("a", R"({"n":1})");
  const auto first = accept_one();
  EXPECT_FALSE(add("a", R"({"n":2})"));
  EXPECT_EQ(data("a"), R"({"n":1})");
  EXPECT_TRUE(update(first).resubmit);
  finish(first);
  EXPECT_EQ(state("a"), State::pending);
  const auto second = accept_one();
  EXPECT_EQ(second.data, R"({"n":2})");
  finish(second);
  EXPECT_EQ(state("a"), State::finished);
}

TEST_F(Jobs, ResubmitKeepsTheData) {
  add("a", R"({"n":1})");
  finish(accept_one());
  in_tx([&](kv::Transaction& tx) { queue.resubmit(tx, "t", "a"); });
  const auto again = accept_one();
  EXPECT_EQ(again.data, R"({"n":1})");
  in_tx([&](kv::Transaction& tx) { queue.resubmit(tx, "t", "a", 0, R"({"n":2})"); });
  in_tx([&](kv::Transaction& tx) { queue.resubmit(tx, "t", "a", clock.wall_ms() + 50); });
  finish(again);
  EXPECT_TRUE(accept().empty());
  clock.advance(milliseconds(50));
  EXPECT_EQ(accept_one().data, R"({"n":2})");
}

TEST_F(Jobs, ARemovedJobHaltsItsWorker) {
  add("a");
  const auto accepted = accept_one();
  in_tx([&](kv::Transaction& tx) { queue.remove(tx, "t", "a"); });
  EXPECT_EQ(error_of([&] { update(accepted); }), "halt");
  EXPECT_THROW(finish(accepted), LockLost);
  EXPECT_EQ(error_of([&] { in_tx([&](kv::Transaction& tx) { queue.remove(tx, "t", "a"); }); }), "not_found");
  EXPECT_TRUE(add("a"));
  EXPECT_EQ(error_of([&] { finish(accepted); }), "halt");
}

TEST_F(Jobs, WritesOfAStaleAttemptAreNotCommitted) {
  add("a");
  const auto stale = accept_one();
  in_tx([&](kv::Transaction& tx) { release(queue, tx, stale.attempt()); });
  const auto fresh = accept_one();
  EXPECT_EQ(error_of([&] {
              in_tx([&](kv::Transaction& tx) {
                tx.set("effect", "stale");
                jobs::finish(queue, tx, stale.attempt());
              });
            }),
            "halt");
  in_tx([&](kv::Transaction& tx) {
    tx.set("effect", "fresh");
    jobs::finish(queue, tx, fresh.attempt());
  });
  EXPECT_EQ(in_tx([&](kv::Transaction& tx) { return tx.get("effect"); }), "fresh");
}

TEST_F(Jobs, AFinishThatRacesAReclaimFails) {
  add("a");
  const auto accepted = accept_one();
  auto late = store->begin();
  jobs::finish(queue, *late, accepted.attempt());
  in_tx([&](kv::Transaction& tx) { release(queue, tx, accepted.attempt()); });
  EXPECT_THROW(late->commit(), kv::Error);
  EXPECT_EQ(state("a"), State::pending);
}

TEST_F(Jobs, FailuresBackOffAndEnd) {
  in_tx([&](kv::Transaction& tx) {
    queue.set_type(tx, "t", parse_settings(R"({"max_attempts":3,"backoff_min":1000})"));
  });
  add("a");
  fail(accept_one());
  EXPECT_EQ(job("a").last_error, "broken");
  const auto pause = job("a").due_at - clock.wall_ms();
  EXPECT_GE(pause, 750);
  EXPECT_LE(pause, 1000);
  EXPECT_TRUE(accept().empty());
  clock.advance(seconds(1));
  fail(accept_one());
  EXPECT_GE(job("a").due_at - clock.wall_ms(), 1500);
  clock.advance(seconds(2));
  fail(accept_one());
  EXPECT_EQ(state("a"), State::failed);
  EXPECT_EQ(count(State::failed), 1);
  in_tx([&](kv::Transaction& tx) { queue.resubmit(tx, "t", "a"); });
  EXPECT_EQ(accept_one().job.failures, 0);
}

TEST_F(Jobs, CancelPendingAndRunning) {
  add("a");
  in_tx([&](kv::Transaction& tx) { queue.cancel(tx, "t", "a"); });
  EXPECT_EQ(state("a"), State::cancelled);
  add("b");
  const auto accepted = accept_one();
  in_tx([&](kv::Transaction& tx) { queue.cancel(tx, "t", "b"); });
  EXPECT_TRUE(update(accepted).cancel);
  finish(accepted);
  EXPECT_EQ(state("b"), State::cancelled);
}

TEST_F(Jobs, PausedTypesAcceptAddsAndYieldNoJobs) {
  in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "t", {.paused = true}); });
  add("a");
  EXPECT_TRUE(accept().empty());
  in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "t", {}); });
  EXPECT_EQ(accept().size(), 1u);
}

TEST_F(Jobs, LargeDataAndSmallerDataAfterwards) {
  const std::string large = "\"" + std::string(1'000'000, 'x') + "\"";
  add("a", large);
  EXPECT_EQ(accept_one().data, large);
  add("b", large);
  add("b", "1");
  EXPECT_EQ(data("b"), "1");
  EXPECT_EQ(error_of([&] { add("c", std::string(kMaxDataBytes + 1, 'x')); }), "too_large");
}

TEST_F(Jobs, ATooLargeAddOfSeveralJobsEndsBeforeItsCommit) {
  const std::string data = "\"" + std::string(1'000'000, 'x') + "\"";
  const std::vector<Queue::NewJob> jobs(100, {.id = std::nullopt, .data = data});
  const auto tx = store->begin();
  try {
    queue.add_all(*tx, "t", jobs);
    FAIL() << "all jobs were added";
  } catch (const kv::Error& error) { EXPECT_EQ(error.code(), kv::ErrorCode::transaction_too_large); }
  EXPECT_LT(tx->approximate_size(), kv::kMaxTransactionBytes + 2 * data.size());
}

TEST_F(Jobs, AReportDoesNotWriteTheDataAgain) {
  add("a", "\"" + std::string(1'000'000, 'x') + "\"");
  const auto accepted = accept_one();
  in_tx([&](kv::Transaction& tx) {
    jobs::update(queue, tx, accepted.attempt(), std::nullopt, R"({"done":1})");
    EXPECT_FALSE(tx.read_only());
    EXPECT_LT(tx.approximate_size(), 10'000u);
  });
}

// A store in which beginning a transaction takes long, as if the process were frozen.
class SlowStore final : public kv::ForwardingDatabase {
 public:
  SlowStore(kv::Database& inner, ManualClock& clock) : ForwardingDatabase(inner), clock_(clock) {}
  std::unique_ptr<kv::Transaction> begin() override {
    if (slow_begins > 0) {
      --slow_begins;
      clock_.advance(seconds(100));
    }
    return inner().begin();
  }
  int slow_begins = 0;

 private:
  ManualClock& clock_;
};

TEST_F(Jobs, AFrozenMaintenanceReclaimsNoActiveJobs) {
  SlowStore slow(*store, clock);
  Maintenance maintenance(queue, slow, clock);
  add("a");
  const auto accepted = accept_one();
  slow.slow_begins = 4;  // the last of them reads the running jobs
  maintenance.step();
  // The job was first seen just now, so its timeout has not passed.
  clock.advance(seconds(1));
  maintenance.step();
  EXPECT_EQ(state("a"), State::running);
  pass(maintenance, seconds(31));
  EXPECT_EQ(state("a"), State::pending);
}

TEST_F(Jobs, ASilentJobIsPendingAgainAndItsOldLockHalts) {
  Maintenance maintenance(queue, *store, clock);
  add("a");
  add("b");
  const auto jobs = accept({.limit = 2});  // two in one transaction: both must expire
  pass(maintenance, seconds(29));
  EXPECT_EQ(count(State::running), 2);
  pass(maintenance, seconds(2));
  EXPECT_EQ(count(State::pending), 2);
  EXPECT_EQ(error_of([&] { update(jobs[0]); }), "halt");
  EXPECT_EQ(error_of([&] { finish(jobs[1]); }), "halt");
}

TEST_F(Jobs, UpdatesKeepAJobRunning) {
  Maintenance maintenance(queue, *store, clock);
  add("a");
  const auto accepted = accept_one();
  for (int i = 0; i < 10; ++i) {
    pass(maintenance, seconds(20));
    update(accepted, fmt::format("{{\"done\":{}}}", i));
  }
  EXPECT_EQ(state("a"), State::running);
  EXPECT_EQ(job("a").progress, R"({"done":9})");
}

TEST_F(Jobs, ProgressThatIsTooLargeOrNotTextIsRejected) {
  add("a");
  const auto accepted = accept_one();
  update(accepted, "\"" + std::string(kMaxProgressBytes - 2, 'x') + "\"");
  const auto finish_with = [&](std::string_view progress) {
    store->run(
        [&](kv::Transaction& tx) { jobs::finish(queue, tx, accepted.attempt(), std::nullopt, progress); });
  };
  for (const std::string& progress :
       {"\"" + std::string(kMaxProgressBytes - 1, 'x') + "\"", std::string("\"\xff\"")}) {
    EXPECT_EQ(error_of([&] { update(accepted, progress); }), "bad_request");
    EXPECT_EQ(error_of([&] { finish_with(progress); }), "bad_request");
  }
  EXPECT_EQ(state("a"), State::running);
  finish_with("{}");
  EXPECT_EQ(job("a").progress, "{}");
}

TEST_F(Jobs, AWorkersJobsArePendingInTheCommitThatEndsIt) {
  const auto ref = in_tx([&](kv::Transaction& tx) { return registry.add(tx, "r", "w1", "{}"); });
  in_tx([&](kv::Transaction& tx) { registry.add(tx, "r", "w10", "{}"); });
  for (const std::string id : {"a", "b", "c"}) add(id);
  const auto jobs = accept({.limit = 2, .worker = ref});
  const auto other = accept({.worker = workers::WorkerRef{"r", "w10", ""}});
  EXPECT_EQ(count(State::running), 3);
  // One heartbeat serves a thousand jobs: an update without changes writes nothing.
  auto tx = store->begin();
  jobs::update(queue, *tx, jobs[0].attempt());
  tx->commit();
  EXPECT_EQ(tx->committed_version(), -1);
  in_tx([&](kv::Transaction& tx2) { registry.remove(tx2, ref); });
  EXPECT_EQ(count(State::pending), 2);
  EXPECT_EQ(error_of([&] { update(jobs[0]); }), "halt");
  finish(other[0]);
  EXPECT_EQ(error_of([&] { accept({.worker = ref}); }), "not_found");
}

TEST_F(Jobs, AnAcceptThatRacesTheWorkersEndStrandsNoJob) {
  const auto ref = in_tx([&](kv::Transaction& tx) { return registry.add(tx, "r", "w", "{}"); });
  add("a");
  auto late = store->begin();
  const std::vector<std::string> types{"t"};
  jobs::accept(queue, *late, types, {.worker = ref});
  in_tx([&](kv::Transaction& tx) { registry.remove(tx, ref); });
  EXPECT_THROW(late->commit(), kv::Error);
  EXPECT_EQ(state("a"), State::pending);
}

TEST_F(Jobs, EndedJobsArePruned) {
  Maintenance maintenance(queue, *store, clock);
  add("a");
  finish(accept_one());
  maintenance.step();
  EXPECT_EQ(count(State::finished), 1);
  clock.advance(std::chrono::hours(24) + seconds(1));
  maintenance.step();
  EXPECT_EQ(count(State::finished), 0);
  EXPECT_FALSE(in_tx([&](kv::Transaction& tx) { return queue.find(tx, "t", "a"); }));
}

TEST_F(Jobs, ABlockedAcceptWakesOnAnAdd) {
  Acceptor acceptor(queue, *store, clock);
  const std::vector<std::string> types{"t"};
  auto accepted = std::async(std::launch::async,
                             [&] { return acceptor.accept(types, {}, clock.now() + std::chrono::hours(1)); });
  add("a");
  EXPECT_EQ(accepted.get().at(0).job.id, "a");
}

TEST_F(Jobs, ABlockedAcceptWakesWhenAJobIsDue) {
  Acceptor acceptor(queue, *store, clock);
  const std::vector<std::string> types{"t"};
  const auto due = clock.wall_ms() + 60'000;
  add("a", "{}", {.scheduled_at = due});
  auto accepted = std::async(std::launch::async,
                             [&] { return acceptor.accept(types, {}, clock.now() + std::chrono::hours(1)); });
  while (accepted.wait_for(milliseconds(2)) != std::future_status::ready) clock.advance(seconds(1));
  EXPECT_EQ(accepted.get().at(0).job.id, "a");
  EXPECT_GE(clock.wall_ms(), due);
}

TEST_F(Jobs, ABlockedAcceptEndsAtItsDeadlineOrWhenInterrupted) {
  Acceptor acceptor(queue, *store, clock);
  const std::vector<std::string> types{"t"};
  const auto deadline = clock.now() + seconds(10);
  auto accepted = std::async(std::launch::async, [&] { return acceptor.accept(types, {}, deadline); });
  // Adds of jobs that are not due yet cause spurious wake-ups.
  for (int i = 0; i < 5; ++i)
    add("f" + std::to_string(i), "{}", {.scheduled_at = clock.wall_ms() + 1'000'000});
  while (accepted.wait_for(milliseconds(2)) != std::future_status::ready) clock.advance(seconds(1));
  EXPECT_TRUE(accepted.get().empty());
  EXPECT_GE(clock.now(), deadline);
  auto blocked =
      std::async(std::launch::async, [&] { return acceptor.accept(types, {}, MonotonicTime::max()); });
  acceptor.interrupt();
  EXPECT_TRUE(blocked.get().empty());
}

TEST_F(Jobs, ManyWorkersRunEveryJobsEffectOnce) {
  constexpr int kJobs = 200, kWorkers = 4;
  for (int i = 0; i < kJobs; ++i) add("j" + std::to_string(i));
  const std::vector<std::string> types{"t"};
  std::vector<std::future<void>> workers;
  for (int w = 0; w < kWorkers; ++w) {
    workers.push_back(std::async(std::launch::async, [&, w] {
      SeededRng chance(static_cast<std::uint64_t>(w));
      for (;;) {
        const auto jobs =
            in_tx([&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, {.limit = 3}).jobs; });
        if (jobs.empty() && count(State::pending) + count(State::running) == 0) return;
        for (const auto& job : jobs) {
          // Some attempts release the job; some lose it and continue all the same.
          if (chance.below(4) == 0) {
            in_tx([&](kv::Transaction& tx) { release(queue, tx, job.attempt()); });
            if (chance.below(2) == 0) continue;
          }
          try {
            in_tx([&](kv::Transaction& tx) {
              tx.add("effect" + job.job.id, 1);
              jobs::finish(queue, tx, job.attempt());
            });
          } catch (const LockLost&) {}
        }
      }
    }));
  }
  // Transactions that conflict pause on the virtual clock.
  for (auto& worker : workers) {
    while (worker.wait_for(milliseconds(1)) != std::future_status::ready) clock.advance(milliseconds(10));
  }
  in_tx([&](kv::Transaction& tx) {
    for (int i = 0; i < kJobs; ++i) {
      EXPECT_EQ(kv::decode_counter(tx.get("effectj" + std::to_string(i))), 1) << i;
    }
  });
  EXPECT_EQ(count(State::finished), kJobs);
}

TEST(JobSettings, TimesBeyondTheirLimitsAreRejected) {
  EXPECT_EQ(parse_settings(R"({"timeout":1000})").timeout, seconds(1));
  // In nanoseconds the first exceeds 2^64 by about a second.
  for (const auto* timeout : {"18446744074710", "9223372036854775807", "-9223372036854775808", "99", "1.5"}) {
    EXPECT_THROW(parse_settings(fmt::format(R"({{"timeout":{}}})", timeout)), Error) << timeout;
  }
}

TEST_F(Jobs, AJobDueInMillionsOfYearsLetsAcceptorsWait) {
  add("far", "{}", {.scheduled_at = INT64_MAX});
  Acceptor acceptor(queue, *store, clock);
  EXPECT_TRUE(acceptor.accept(std::vector<std::string>{"t"}, {}, clock.now()).empty());
  EXPECT_EQ(state("far"), State::pending);
}

TEST_F(Jobs, AHeaderWithTrailingBytesIsRejected) {
  add("x");
  accept_one();
  const std::string key = JobKey("job").string("t").string("x").key();
  const std::string header = in_tx([&](kv::Transaction& tx) { return tx.get(key).value(); });
  // The header ends with the versionstamp of the last report.
  ASSERT_TRUE(job("x").activity);
  in_tx([&](kv::Transaction& tx) {
    tx.set(key, header + "\x14");
    EXPECT_THROW(read_job(tx, "t", "x"), Error);
    tx.set(key, header);
  });
}

}  // namespace
}  // namespace divan::jobs
