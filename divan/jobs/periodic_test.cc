#include "divan/jobs/periodic.h"

#include <fmt/core.h>

#include "divan/jobs/attempts.h"
#include "divan/jobs/ended.h"
#include "divan/jobs/maintenance.h"
#include "divan/jobs/rows.h"
#include "divan/jobs/testing.h"

namespace divan::jobs {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::int64_t kNoon = 1'772'452'800'000;  // 2026-03-02 12:00 UTC
constexpr std::int64_t kHour = 3'600'000;
constexpr std::int64_t kMinute = 60'000;

const Schedule kHourly = Schedule::parse("@hourly", "UTC");
const Schedule kHourlyOrSkip = Schedule::parse("@hourly", "UTC", Missed::skip);

struct PeriodicJobs : QueueTest {
  PeriodicJobs() : QueueTest(kNoon + 10 * kMinute) {}

  Queue other{registry, clock, rng};  // that of another server

  void SetUp() override { set_type({.max_attempts = 2}); }

  void set_type(const TypeSettings& settings) {
    in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "t", settings); });
  }
  // Returns true if that wrote anything.
  bool add(const Queue::AddOptions& options, std::string_view data = "{}", std::string_view id = "a") {
    const auto tx = store->begin();
    queue.add(*tx, "t", id, data, options);
    const bool wrote = !tx->read_only();
    tx->commit();
    return wrote;
  }
  bool add(const Schedule& schedule, std::string_view data = "{}", std::string_view id = "a") {
    return add({.schedule = schedule}, data, id);
  }
  Accepted try_accept(const AcceptOptions& options = {.limit = 10}) {
    const std::vector<std::string> types{"t"};
    return in_tx([&](kv::Transaction& tx) { return accept(queue, tx, types, options); });
  }
  std::vector<AcceptedJob> accept_all() { return try_accept().jobs; }
  AcceptedJob accept_one() {
    auto jobs = accept_all();
    if (jobs.size() != 1) throw std::runtime_error(fmt::format("{} jobs to accept", jobs.size()));
    return jobs.front();
  }
  Job job(std::string_view id = "a") {
    return in_tx([&](kv::Transaction& tx) { return queue.find(tx, "t", id).value(); });
  }
  bool is_there(std::string_view id) {
    return in_tx([&](kv::Transaction& tx) { return queue.find(tx, "t", id).has_value(); });
  }
  std::string data(std::string_view id = "a") {
    return in_tx([&](kv::Transaction& tx) { return queue.data(tx, *queue.find(tx, "t", id)); });
  }
  void finish(const AcceptedJob& job, std::optional<std::string_view> data = std::nullopt) {
    in_tx([&](kv::Transaction& tx) { jobs::finish(queue, tx, job.attempt(), data); });
  }
  void fail(const AcceptedJob& job) {
    in_tx([&](kv::Transaction& tx) { jobs::fail(queue, tx, job.attempt(), "broken"); });
  }
  void lose(const AcceptedJob& attempt) {
    in_tx([&](kv::Transaction& tx) {
      Job lost = queue.find(tx, "t", attempt.job.id).value();
      reclaim(queue, tx, lost, Outcome::lost);
    });
  }
  void cancel(std::string_view id = "a") {
    in_tx([&](kv::Transaction& tx) { queue.cancel(tx, "t", id); });
  }
  void resubmit(std::int64_t at = 0, std::string_view id = "a") {
    in_tx([&](kv::Transaction& tx) { queue.resubmit(tx, "t", id, at); });
  }
  void remove(std::string_view id = "a") {
    in_tx([&](kv::Transaction& tx) { queue.remove(tx, "t", id); });
  }
  // "running", or "pending at 13:00".
  std::string state(std::string_view id = "a") {
    const Job found = job(id);
    if (found.state != State::pending) return std::string(state_name(found.state));
    const std::int64_t minute = (found.due_at - kNoon) / kMinute + 12 * 60;
    return fmt::format("pending at {:02}:{:02}", minute / 60, minute % 60);
  }
  void advance_to(std::int64_t hour, std::int64_t minute = 0) {
    clock.advance(
        std::chrono::milliseconds(kNoon + (hour - 12) * kHour + minute * kMinute - clock.wall_ms()));
  }
};

TEST_F(PeriodicJobs, RunOncePerTick) {
  EXPECT_TRUE(add(kHourly, R"({"n":1})"));
  EXPECT_EQ(state(), "pending at 13:00");
  EXPECT_EQ(job().scheduled_at, kNoon + kHour);
  EXPECT_TRUE(accept_all().empty());
  EXPECT_EQ(try_accept().next_due_at, kNoon + kHour);
  for (int hour = 13; hour < 16; ++hour) {
    advance_to(hour);
    const auto run = accept_one();
    EXPECT_EQ(run.data, R"({"n":1})");
    EXPECT_EQ(run.job.attempt, 1);
    EXPECT_TRUE(accept_all().empty());
    advance_to(hour, 5);
    finish(run);
    EXPECT_EQ(state(), fmt::format("pending at {}:00", hour + 1));
    EXPECT_EQ(job().finished_at, kNoon + (hour - 12) * kHour + 5 * kMinute);
    EXPECT_TRUE(accept_all().empty());
  }
}

TEST_F(PeriodicJobs, TwoServersAcceptATickOnce) {
  add(kHourly);
  advance_to(13);
  const std::vector<std::string> types{"t"};
  const auto first = store->begin();
  const auto second = store->begin();
  EXPECT_EQ(accept(queue, *first, types, {}).jobs.size(), 1u);
  EXPECT_EQ(accept(other, *second, types, {}).jobs.size(), 1u);
  first->commit();
  EXPECT_THROW(second->commit(), kv::Error);
  EXPECT_TRUE(accept_all().empty());
}

TEST_F(PeriodicJobs, AServerWhoseClockIsBehindDoesNotRunATickAgain) {
  add(kHourly);
  advance_to(13);
  const auto run = accept_one();
  ManualClock behind(kNoon);
  Queue late(registry, behind, rng);
  in_tx([&](kv::Transaction& tx) { jobs::finish(late, tx, run.attempt()); });
  EXPECT_EQ(state(), "pending at 14:00");
}

TEST_F(PeriodicJobs, ALongRunSkipsTheTicksMeanwhile) {
  add(kHourly);
  advance_to(13);
  const auto run = accept_one();
  advance_to(16, 30);
  finish(run);
  EXPECT_EQ(state(), "pending at 17:00");
}

TEST_F(PeriodicJobs, DataOfAFinishIsThatOfTheNextOccurrence) {
  add(kHourly);
  advance_to(13);
  finish(accept_one(), R"({"since":7})");
  advance_to(14);
  EXPECT_EQ(accept_one().data, R"({"since":7})");
}

TEST_F(PeriodicJobs, AFailedAttemptIsRetriedAndEachOccurrenceCountsItsOwn) {
  add(kHourly);
  advance_to(13);
  fail(accept_one());
  EXPECT_EQ(job().failures, 1);
  EXPECT_EQ(job().scheduled_at, kNoon + kHour);
  EXPECT_LE(job().due_at, clock.wall_ms() + 1000);
  clock.advance(seconds(1));
  const auto second = accept_one();
  EXPECT_EQ(second.job.attempt, 2);
  fail(second);
  EXPECT_EQ(state(), "pending at 14:00");
  EXPECT_EQ(job().failures, 0);
  EXPECT_EQ(job().attempt, 0);
  EXPECT_EQ(job().last_error, "broken");
  advance_to(14);
  finish(accept_one());
  EXPECT_EQ(job().last_error, "");
}

TEST_F(PeriodicJobs, EachOccurrenceCountsItsOwnLostAttempts) {
  set_type({.max_attempts = 1, .max_lost = 2});
  add(kHourly);
  for (const int hour : {13, 14}) {
    advance_to(hour);
    lose(accept_one());
    EXPECT_EQ(job().lost, 1);
    EXPECT_EQ(job().scheduled_at, kNoon + (hour - 12) * kHour);
    lose(accept_one());
    EXPECT_EQ(state(), fmt::format("pending at {}:00", hour + 1));
    EXPECT_EQ(job().lost, 0);
  }
  // The same holds for occurrences that end in other ways.
  advance_to(15);
  lose(accept_one());
  fail(accept_one());
  EXPECT_EQ(state(), "pending at 16:00");
  EXPECT_EQ(job().lost, 0);
}

TEST_F(PeriodicJobs, ALostRunIsRunAgainForItsTick) {
  add(kHourlyOrSkip);
  Maintenance maintenance(queue, *store, clock);
  advance_to(13);
  const auto lost = accept_one();
  // After the next tick: the occurrence was started, so it was not missed.
  advance_to(14, 30);
  pass(maintenance, std::chrono::seconds(31));
  EXPECT_EQ(job().state, State::pending);
  EXPECT_EQ(job().scheduled_at, kNoon + kHour);
  EXPECT_THROW(finish(lost), Error);
  const auto again = accept_one();
  EXPECT_EQ(again.job.attempt, 2);
  finish(again);
  EXPECT_EQ(state(), "pending at 15:00");
}

TEST_F(PeriodicJobs, AReleasedRunIsAcceptedAgain) {
  add(kHourly);
  advance_to(13);
  const auto run = accept_one();
  in_tx([&](kv::Transaction& tx) { release(queue, tx, run.attempt()); });
  finish(accept_one());
  EXPECT_EQ(state(), "pending at 14:00");
}

TEST_F(PeriodicJobs, MissedTicksRunOnce) {
  add(kHourly);
  advance_to(16, 30);
  finish(accept_one());
  EXPECT_EQ(state(), "pending at 17:00");
  EXPECT_TRUE(accept_all().empty());
}

TEST_F(PeriodicJobs, MissedTicksAreSkipped) {
  add(kHourlyOrSkip);
  // Late, but before the next tick: not missed.
  advance_to(13, 59);
  finish(accept_one());
  EXPECT_EQ(state(), "pending at 14:00");
  advance_to(15);
  const auto found = try_accept();
  EXPECT_TRUE(found.jobs.empty());
  EXPECT_EQ(found.next_due_at, kNoon + 4 * kHour);
  EXPECT_EQ(state(), "pending at 16:00");
  advance_to(16);
  EXPECT_EQ(accept_one().job.attempt, 1);
}

TEST_F(PeriodicJobs, AMissedTickThatAnotherServerHasAcceptedIsNotSkipped) {
  add(kHourlyOrSkip);
  advance_to(14);
  const std::vector<std::string> types{"t"};
  ManualClock behind(kNoon + kHour);
  Queue late(registry, behind, rng);
  const auto skipping = store->begin();
  const auto running = store->begin();
  EXPECT_TRUE(accept(queue, *skipping, types, {}).jobs.empty());
  EXPECT_EQ(accept(late, *running, types, {}).jobs.size(), 1u);
  running->commit();
  EXPECT_THROW(skipping->commit(), kv::Error);
  EXPECT_EQ(state(), "running");
}

TEST_F(PeriodicJobs, SkippedOnesDoNotBlockOthers) {
  for (int i = 0; i < 120; ++i) add(kHourlyOrSkip, "{}", fmt::format("skip-{}", i));
  advance_to(13);
  add(Queue::AddOptions{.priority = 1}, "{}", "b");
  advance_to(14);
  // One pass skips at most a hundred.
  const auto first = try_accept({.limit = 1});
  EXPECT_TRUE(first.jobs.empty());
  EXPECT_EQ(first.next_due_at, clock.wall_ms());
  const auto second = try_accept({.limit = 1});
  ASSERT_EQ(second.jobs.size(), 1u);
  EXPECT_EQ(second.jobs.front().job.id, "b");
  EXPECT_EQ(state("skip-7"), "pending at 15:00");
}

TEST_F(PeriodicJobs, SkippedOnesTakeNoSlots) {
  set_type({.max_running = 1});
  add(kHourlyOrSkip);
  advance_to(14);
  add(Queue::AddOptions{.priority = 1}, "{}", "b");
  EXPECT_EQ(accept_one().job.id, "b");
}

TEST_F(PeriodicJobs, WhileItsTypeIsPausedNothingRuns) {
  add(kHourly, "{}", "once");
  add(kHourlyOrSkip, "{}", "skip");
  set_type({.paused = true});
  advance_to(15, 30);
  EXPECT_TRUE(accept_all().empty());
  set_type({});
  EXPECT_EQ(accept_one().job.id, "once");
  EXPECT_EQ(state("skip"), "pending at 16:00");
}

// A released attempt is not counted, but has started the occurrence.
TEST_F(PeriodicJobs, AReleasedOccurrenceIsNotMissed) {
  add(kHourlyOrSkip);
  advance_to(13);
  const auto released = accept_one();
  in_tx([&](kv::Transaction& tx) { release(queue, tx, released.attempt(), std::chrono::minutes(90)); });
  advance_to(14, 30);
  const auto again = accept_one();
  EXPECT_EQ(again.job.attempt, 1);
  EXPECT_EQ(again.job.scheduled_at, kNoon + kHour);
  finish(again);
  EXPECT_EQ(state(), "pending at 15:00");
  // The next one is.
  advance_to(16, 30);
  EXPECT_TRUE(accept_all().empty());
  EXPECT_EQ(state(), "pending at 17:00");
}

TEST_F(PeriodicJobs, ResubmitRunsItNowAndTheScheduleContinues) {
  add(kHourlyOrSkip);
  resubmit();
  EXPECT_EQ(state(), "pending at 12:10");
  // A resubmitted job runs however late.
  advance_to(15, 30);
  finish(accept_one());
  EXPECT_EQ(state(), "pending at 16:00");
  // Resubmitted while it runs, it runs once more at once.
  advance_to(16);
  const auto run = accept_one();
  resubmit();
  finish(run);
  const auto again = accept_one();
  EXPECT_EQ(again.job.attempt, 1);
  EXPECT_EQ(again.job.finished_at, clock.wall_ms()) << "of the run before, which distinguishes the two";
  finish(again);
  EXPECT_EQ(state(), "pending at 17:00");
  EXPECT_EQ(job().schedule, kHourlyOrSkip.json());
}

// A job waits after a failure although its scheduled time has passed.
TEST_F(PeriodicJobs, ResubmitEndsTheBackoffOfAnImmediateRun) {
  add(kHourly);
  resubmit();
  fail(accept_one());
  EXPECT_EQ(job().scheduled_at, 0);
  EXPECT_TRUE(accept_all().empty());
  resubmit();
  EXPECT_EQ(accept_one().job.failures, 1);
}

TEST_F(PeriodicJobs, CancelEndsItUntilItIsResubmitted) {
  add(kHourly);
  cancel();
  EXPECT_EQ(state(), "cancelled");
  EXPECT_EQ(job().schedule, kHourly.json());
  advance_to(14);
  EXPECT_TRUE(accept_all().empty());
  resubmit();
  finish(accept_one());
  EXPECT_EQ(state(), "pending at 15:00");
  advance_to(15);
  const auto run = accept_one();
  cancel();
  finish(run);
  EXPECT_EQ(state(), "cancelled");
  add(kHourly);
  EXPECT_EQ(state(), "pending at 16:00");
  advance_to(16);
  const auto failing = accept_one();
  cancel();
  fail(failing);
  EXPECT_EQ(state(), "cancelled");
}

TEST_F(PeriodicJobs, AddingItAfterACancelRestartsIt) {
  add(kHourly, R"({"n":1})");
  advance_to(13);
  const auto run = accept_one();
  cancel();
  EXPECT_TRUE(add(kHourly, R"({"n":1})"));
  finish(run);
  EXPECT_EQ(state(), "pending at 14:00");
}

TEST_F(PeriodicJobs, ResubmittingARunningOneKeepsTheDataOfTheRun) {
  add(kHourly, R"({"n":1})");
  advance_to(13);
  const auto run = accept_one();
  resubmit();
  in_tx([&](kv::Transaction& tx) { jobs::finish(queue, tx, run.attempt(), R"({"n":2})"); });
  EXPECT_EQ(accept_one().data, R"({"n":2})");
}

TEST_F(PeriodicJobs, ARemovedOneDoesNotRunAgain) {
  add(kHourly);
  advance_to(13);
  const auto run = accept_one();
  remove();
  EXPECT_THROW(finish(run), Error);
  EXPECT_FALSE(is_there("a"));
}

TEST_F(PeriodicJobs, AddingTheSameWritesNothing) {
  EXPECT_TRUE(add(kHourly, R"({"n":1})"));
  EXPECT_FALSE(add(kHourly, R"({"n":1})"));
  advance_to(13);
  EXPECT_FALSE(add(kHourly, R"({"n":1})"));
  EXPECT_EQ(state(), "pending at 13:00");
  const auto run = accept_one();
  EXPECT_FALSE(add(kHourly, R"({"n":1})"));
  fail(run);
  EXPECT_FALSE(add(kHourly, R"({"n":1})"));
  EXPECT_EQ(job().failures, 1);
}

TEST_F(PeriodicJobs, AddingChangesIt) {
  add(kHourly);
  advance_to(13, 10);
  // With the same schedule it keeps its time, even if that has passed.
  EXPECT_TRUE(add(kHourly, R"({"n":2})"));
  EXPECT_EQ(state(), "pending at 13:00");
  EXPECT_TRUE(add({.priority = 3, .schedule = kHourly}, R"({"n":2})"));
  EXPECT_EQ(state(), "pending at 13:00");
  EXPECT_EQ(job().priority, 3);
  EXPECT_EQ(data(), R"({"n":2})");
  EXPECT_TRUE(add(Schedule::parse("*/20 * * * *", "UTC")));
  EXPECT_EQ(state(), "pending at 13:20");
  // Without a schedule it is an ordinary job.
  EXPECT_TRUE(add(Queue::AddOptions()));
  EXPECT_EQ(state(), "pending at 13:10");
  finish(accept_one());
  EXPECT_EQ(state(), "finished");
  EXPECT_EQ(job().schedule, "");
  EXPECT_THROW(add({.scheduled_at = 5, .schedule = kHourly}), Error);
}

TEST_F(PeriodicJobs, AddingToARunningOneCountsFromTheNextTick) {
  add(kHourly);
  advance_to(13);
  const auto run = accept_one();
  EXPECT_TRUE(add(Schedule::parse("30 * * * *", "UTC"), R"({"n":2})"));
  EXPECT_FALSE(add(Schedule::parse("30 * * * *", "UTC"), R"({"n":2})"));
  EXPECT_EQ(data(), "{}");
  finish(run);
  EXPECT_EQ(state(), "pending at 13:30");
  EXPECT_EQ(data(), R"({"n":2})");
  advance_to(13, 30);
  const auto next = accept_one();
  EXPECT_EQ(next.job.attempt, 1);
  add(Queue::AddOptions());
  finish(next);
  EXPECT_EQ(job().schedule, "");
  finish(accept_one());
  EXPECT_EQ(state(), "finished");
}

TEST_F(PeriodicJobs, ATypesOwnJobFollowsItsSettings) {
  set_type({.schedule = kHourly.json()});
  EXPECT_EQ(state("_periodic"), "pending at 13:00");
  EXPECT_THROW(add(kHourly, "{}", "_periodic"), Error);
  // Other settings leave it alone.
  advance_to(13);
  const auto run = accept_one();
  set_type({.max_attempts = 7, .schedule = kHourly.json()});
  EXPECT_FALSE(job("_periodic").resubmit);
  finish(run);
  set_type({.schedule = Schedule::parse("30 * * * *", "UTC").json()});
  EXPECT_EQ(state("_periodic"), "pending at 13:30");
  set_type({});
  EXPECT_FALSE(is_there("_periodic"));
}

TEST_F(PeriodicJobs, RemovingATypesOwnJobRemovesTheSchedule) {
  const auto schedule = [&] {
    return in_tx([&](kv::Transaction& tx) { return queue.type(tx, "t").schedule; });
  };
  set_type({.retention = seconds(60), .schedule = kHourly.json()});
  remove("_periodic");
  EXPECT_EQ(schedule(), "");
  set_type({.retention = seconds(60), .schedule = kHourly.json()});
  cancel("_periodic");
  EXPECT_EQ(schedule(), kHourly.json());
  clock.advance(minutes(2));
  in_tx([&](kv::Transaction& tx) { return prune(queue, tx, "t", 10); });
  EXPECT_FALSE(is_there("_periodic"));
  EXPECT_EQ(schedule(), "");
  set_type({.schedule = kHourly.json()});
  in_tx([&](kv::Transaction& tx) { queue.remove_type(tx, "t", true); });
  set_type({});
  EXPECT_FALSE(is_there("_periodic"));
}

TEST_F(PeriodicJobs, AnEarlyRunCountsForItsTick) {
  add(kHourly);
  const auto runs = try_accept({.limit = 1, .max_scheduled_at = kNoon + kHour}).jobs;
  ASSERT_EQ(runs.size(), 1u);
  in_tx([&](kv::Transaction& tx) { release(queue, tx, runs.front().attempt()); });
  EXPECT_EQ(state(), "pending at 13:00");
  finish(try_accept({.limit = 1, .max_scheduled_at = kNoon + kHour}).jobs.front());
  EXPECT_EQ(state(), "pending at 14:00");
}

// A time zone database that is installed later.
class LateZones {
 public:
  LateZones() { setenv("TZDIR", directory_.path().c_str(), 1); }
  ~LateZones() { unsetenv("TZDIR"); }
  void install(const std::string& name) {
    std::filesystem::copy_file("/usr/share/zoneinfo/Europe/Berlin", directory_.path() + "/" + name);
  }

 private:
  kv::embedded::TemporaryDirectory directory_;
};

struct PeriodicJobsOfUnknownZones : PeriodicJobs {
  LateZones zones;
  // Adds a job whose next tick is unknown. Each test uses a zone of its own, since the library caches zones
  // that it has found.
  void wait_for(const std::string& zone, Missed missed) {
    add(kHourly);
    const auto schedule = fmt::format(R"({{"cron":"30 13 * * *","time_zone":"{}","missed":"{}"}})", zone,
                                      missed == Missed::once ? "once" : "skip");
    in_tx([&](kv::Transaction& tx) {
      auto job = queue.find(tx, "t", "a").value();
      transition(tx, job, [&](Job& changed) { changed.schedule = schedule; });
    });
    // The time was set by a server that knew the zone.
    clock.advance(minutes(50));
    finish(accept_one());
  }
};

TEST_F(PeriodicJobsOfUnknownZones, ReportItAndAreCheckedEachMinute) {
  wait_for("One", Missed::once);  // at 13:00 UTC, which is 14:00 in Berlin
  EXPECT_EQ(job().state, State::pending);
  EXPECT_EQ(job().due_at, clock.wall_ms() + kMinute);
  EXPECT_THAT(job().last_error,
              testing::StartsWith("It is not known when the job is to run next: Unknown time zone `One`"));
  for (int i = 0; i < 3; ++i) {
    clock.advance(minutes(1));
    EXPECT_TRUE(accept_all().empty());
    EXPECT_EQ(job().due_at, clock.wall_ms() + kMinute);
  }
  zones.install("One");
  clock.advance(minutes(1));
  EXPECT_TRUE(accept_all().empty());
  EXPECT_EQ(job().due_at, kNoon + 24 * kHour + 30 * kMinute);
  EXPECT_EQ(job().last_error, "");
}

TEST_F(PeriodicJobsOfUnknownZones, RunMissedTicksOnce) {
  wait_for("Two", Missed::once);
  clock.advance(minutes(24 * 60));
  EXPECT_TRUE(accept_all().empty());
  zones.install("Two");
  clock.advance(minutes(1));
  finish(accept_one());
  EXPECT_EQ(job().last_error, "");
  EXPECT_EQ(job().due_at, kNoon + 48 * kHour + 30 * kMinute);
}

TEST_F(PeriodicJobsOfUnknownZones, OrSkipIt) {
  wait_for("Three", Missed::skip);
  clock.advance(minutes(24 * 60));
  EXPECT_TRUE(accept_all().empty());
  zones.install("Three");
  clock.advance(minutes(1));
  EXPECT_TRUE(accept_all().empty());
  EXPECT_EQ(job().due_at, kNoon + 48 * kHour + 30 * kMinute);
}

}  // namespace
}  // namespace divan::jobs
