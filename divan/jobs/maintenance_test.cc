#include "divan/jobs/maintenance.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <thread>

#include "divan/jobs/attempts.h"
#include "divan/jobs/listing.h"
#include "divan/jobs/rows.h"
#include "divan/kv/counting_testing.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/forwarding.h"

namespace divan::jobs {
namespace {

using std::chrono::seconds;

// A store that fails for a while, or at which the process is paused.
class FailingStore final : public kv::ForwardingDatabase {
 public:
  FailingStore(kv::Database& inner, ManualClock& clock) : ForwardingDatabase(inner), clock_(clock) {}
  std::unique_ptr<kv::Transaction> begin() override {
    if (failing) throw kv::Error(kv::ErrorCode::io_error);
    pause_at(before_nth_read);
    return std::make_unique<Pausing>(*this, inner().begin());
  }
  bool failing = false;
  // The process is paused before or after the transaction of this number, counted from now on.
  int before_nth_read = 0, after_nth_read = 0;

 private:
  class Pausing final : public kv::ForwardingTransaction {
   public:
    Pausing(FailingStore& store, std::unique_ptr<kv::Transaction> inner)
        : ForwardingTransaction(std::move(inner)), store_(store) {}

   protected:
    std::string do_commit() override {
      auto stamp = ForwardingTransaction::do_commit();
      store_.pause_at(store_.after_nth_read);
      return stamp;
    }

   private:
    FailingStore& store_;
  };
  void pause_at(int& nth) {
    if (nth > 0 && --nth == 0) clock_.advance(seconds(1000));
  }
  ManualClock& clock_;
};

// Calls `on_begin` with each transaction.
class NotedStore final : public kv::ForwardingDatabase {
 public:
  using ForwardingDatabase::ForwardingDatabase;
  std::unique_ptr<kv::Transaction> begin() override {
    on_begin();
    return inner().begin();
  }
  std::function<void()> on_begin = [] {};
};

struct JobsMaintenance : testing::Test {
  ManualClock clock;
  kv::embedded::TemporaryStore store{&clock};
  SeededRng rng{1};
  workers::Registry registry{rng};
  Queue queue{registry, clock, rng};
  FailingStore failing{*store, clock};
  Maintenance maintenance{queue, failing, clock};

  // Adds a job of the type and accepts it.
  AcceptedJob run_one(const std::string& type) {
    const std::vector<std::string> types{type};
    store->run([&](kv::Transaction& tx) {
      queue.set_type(tx, type, {});
      queue.add(tx, type, "a", "{}");
    });
    return store->run([&](kv::Transaction& tx) { return accept(queue, tx, types, {}).jobs.at(0); });
  }
  void set_type(const std::string& type, const TypeSettings& settings) {
    store->run([&](kv::Transaction& tx) { queue.set_type(tx, type, settings); });
  }
  State state(const std::string& type) {
    return store->run([&](kv::Transaction& tx) { return queue.find(tx, type, "a")->state; });
  }
  void pass(Duration duration) {
    for (const MonotonicTime end = clock.now() + duration;;) {
      const MonotonicTime next = maintenance.step();
      if (next > end) return clock.advance(end - clock.now());
      clock.advance(next - clock.now());
    }
  }
};

TEST_F(JobsMaintenance, ContinuesWhenTheStoreRecovers) {
  run_one("t");
  maintenance.step();
  failing.failing = true;
  for (int i = 0; i < 3; ++i) {
    clock.advance(seconds(20));
    EXPECT_LE(maintenance.step(), clock.now() + seconds(5));
  }
  EXPECT_EQ(state("t"), State::running);
  failing.failing = false;
  // Silence is counted from 0 again, since workers could not report during the failure.
  pass(seconds(29));
  EXPECT_EQ(state("t"), State::running);
  pass(seconds(2));
  EXPECT_EQ(state("t"), State::pending);
}

// The maintenance is paused before it reads, after it has read, or between two steps: by the machine, which
// pauses workers too.
TEST_F(JobsMaintenance, APauseOfTheProcessDoesNotCountAsSilence) {
  const auto job = run_one("t");
  const std::vector<std::function<void()>> pauses = {[&] { failing.before_nth_read = 4; },
                                                     [&] { failing.after_nth_read = 4; },
                                                     [&] { clock.advance(seconds(1000)); }};
  for (const bool beats : {true, false}) {
    for (const auto& pause : pauses) {
      pass(seconds(20));
      if (beats) store->run([&](kv::Transaction& tx) { update(queue, tx, job.attempt()); });
      pause();
      maintenance.step();
      EXPECT_EQ(failing.before_nth_read + failing.after_nth_read, 0);
      // No more of the pause counts than the wait for the next step.
      pass(seconds(beats ? 24 : 4));
      EXPECT_EQ(state("t"), State::running);
      store->run([&](kv::Transaction& tx) { update(queue, tx, job.attempt()); });
    }
  }
  pass(seconds(20));
  clock.advance(seconds(1000));
  pass(seconds(16));
  EXPECT_EQ(state("t"), State::pending);
}

TEST_F(JobsMaintenance, ADamagedEntryDoesNotPreventOthersFromBeingReclaimed) {
  for (const char* type : {"a", "damaged", "z"}) run_one(type);
  store->run(
      [](kv::Transaction& tx) { tx.set(JobKey("act").string("damaged").integer(0).key() + "\x01", ""); });
  pass(seconds(31));
  EXPECT_EQ(state("a"), State::pending);
  EXPECT_EQ(state("damaged"), State::pending);
  EXPECT_EQ(state("z"), State::pending);
}

TEST_F(JobsMaintenance, ADamagedDeadlineInMillionsOfYearsDoesNotOverflow) {
  run_one("t");
  store->run([](kv::Transaction& tx) {
    tx.set(JobKey("deadline").string("t").integer(0).integer(INT64_MAX).string("a").key(), "");
  });
  const auto next = maintenance.step();
  EXPECT_GT(next, clock.now());
  EXPECT_LE(next, clock.now() + seconds(5));
}

TEST_F(JobsMaintenance, IsWokenByANewType) {
  kv::testing::CountingStore counting(*store);
  Maintenance thread(queue, counting, clock);
  const auto begins = [&](int transactions) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (counting.begun < transactions && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return counting.begun >= transactions;
  };
  thread.start();
  EXPECT_TRUE(begins(3));  // the first step: the types, running jobs, ended jobs
  set_type("quick", {.timeout = std::chrono::milliseconds(100)});
  EXPECT_TRUE(begins(4));  // though no time has passed
}

// A store that can be out of watches.
class WatchStore final : public kv::ForwardingDatabase {
 public:
  using ForwardingDatabase::ForwardingDatabase;
  std::unique_ptr<kv::Transaction> begin() override {
    return std::make_unique<Watching>(*this, inner().begin());
  }
  bool no_watches = false;
  std::vector<std::shared_ptr<kv::Watch>> watches;

 private:
  class Watching final : public kv::ForwardingTransaction {
   public:
    Watching(WatchStore& store, std::unique_ptr<kv::Transaction> inner)
        : ForwardingTransaction(std::move(inner)), store_(store) {}
    std::shared_ptr<kv::Watch> watch(std::string_view key) override {
      if (store_.no_watches) throw kv::Error(kv::ErrorCode::too_many_watches);
      return store_.watches.emplace_back(ForwardingTransaction::watch(key));
    }

   private:
    WatchStore& store_;
  };
};

TEST_F(JobsMaintenance, WithoutAWatchItReadsTheTypesInEachStepAndTriesToSetOneAgain) {
  WatchStore watching(*store);
  Maintenance watched(queue, watching, clock);
  watching.no_watches = true;
  EXPECT_EQ(watched.step() - clock.now(), seconds(5));
  set_type("quick", {.timeout = seconds(1)});
  EXPECT_EQ(watched.step() - clock.now(), std::chrono::milliseconds(250));
  watching.no_watches = false;
  watched.step();
  EXPECT_EQ(watching.watches.size(), 1u);
  watched.step();
  EXPECT_EQ(watching.watches.size(), 1u);
  watching.watches.back()->cancel();
  watched.step();
  EXPECT_EQ(watching.watches.size(), 2u);
  set_type("quick", {.timeout = seconds(2)});
  EXPECT_TRUE(watching.watches.back()->fired());
}

TEST_F(JobsMaintenance, CostsNothingForTypesWithoutRunningJobs) {
  kv::testing::CountingStore counting(*store);
  Maintenance counted(queue, counting, clock);
  const auto transactions_of_a_step = [&] {
    clock.advance(seconds(5));
    counting.begun = 0;
    counted.step();
    return counting.begun.load();
  };
  for (int i = 0; i < 50; ++i) set_type("type" + std::to_string(i), {});
  transactions_of_a_step();
  // They read whether types have changed, the jobs of ended workers, and the types with running jobs.
  EXPECT_EQ(transactions_of_a_step(), 3);
  const auto job = run_one("type7");
  EXPECT_EQ(transactions_of_a_step(), 4);
  store->run([&](kv::Transaction& tx) { finish(queue, tx, job.attempt()); });
  EXPECT_EQ(transactions_of_a_step(), 3);
}

TEST_F(JobsMaintenance, ANewTimeoutCountsAtOnce) {
  run_one("t");
  maintenance.step();
  set_type("t", {.timeout = seconds(3)});
  clock.advance(seconds(3));
  EXPECT_EQ(maintenance.step() - clock.now(), std::chrono::milliseconds(750));
  EXPECT_EQ(state("t"), State::pending);
}

TEST_F(JobsMaintenance, EveryWayToEndIsPruned) {
  store->run(
      [&](kv::Transaction& tx) { queue.set_type(tx, "t", {.max_attempts = 1, .retention = seconds(60)}); });
  const std::vector<std::string> types{"t"};
  store->run([&](kv::Transaction& tx) {
    for (const char* id : {"a", "b", "c", "d"}) queue.add(tx, "t", id, "{}");
  });
  const auto jobs =
      store->run([&](kv::Transaction& tx) { return accept(queue, tx, types, {.limit = 2}).jobs; });
  store->run([&](kv::Transaction& tx) {
    finish(queue, tx, jobs.at(0).attempt(), std::nullopt);
    fail(queue, tx, jobs.at(1).attempt(), "no");
    queue.cancel(tx, "t", "c");
  });
  const auto left = [&] {
    return store->run(
        [&](kv::Transaction& tx) { return list_jobs(queue, tx, "t", {.limit = SIZE_MAX}).jobs.size(); });
  };
  clock.advance(seconds(59));
  maintenance.step();
  EXPECT_EQ(left(), 4u);
  clock.advance(seconds(16));  // a quarter of the retention later at most
  maintenance.step();
  EXPECT_EQ(left(), 1u);
  EXPECT_EQ(store->run([&](kv::Transaction& tx) { return queue.find(tx, "t", "d")->state; }), State::pending);
}

// Another attempt began between the scan of the deadlines and the transaction that ends the one that is
// overdue.
TEST_F(JobsMaintenance, AnAttemptThatReplacesAnOverdueOneContinues) {
  const std::vector<std::string> types{"t"};
  const auto accept_one = [&] {
    return store->run([&](kv::Transaction& tx) { return accept(queue, tx, types, {}).jobs.at(0).attempt(); });
  };
  set_type("t", {.timeout = std::chrono::hours(1), .max_runtime = seconds(10)});
  for (int number = 1; number <= 12; ++number) {
    store->run([&](kv::Transaction& tx) { queue.add(tx, "t", "a", "{}"); });
    auto attempt = accept_one();
    clock.advance(seconds(10));
    NotedStore noted(*store);
    Maintenance ending(queue, noted, clock);
    int begun = 0;
    bool replaced = false;
    noted.on_begin = [&] {
      // The attempt is overdue until the step ends it.
      if (++begun != number || state("t") != State::running) return;
      replaced = true;
      store->run([&](kv::Transaction& tx) { release(queue, tx, attempt); });
      attempt = accept_one();
    };
    ending.step();
    EXPECT_EQ(state("t"), replaced ? State::running : State::pending) << number;
    store->run([&](kv::Transaction& tx) { queue.remove(tx, "t", "a"); });
  }
}

// A job reports after the scan for silent jobs, and before the transaction that reclaims it.
TEST_F(JobsMaintenance, AReportBeforeTheReclaimCounts) {
  const std::vector<std::string> types{"t"};
  set_type("t", {.timeout = seconds(4), .max_lost = std::nullopt});
  for (int number = 1; number <= 12; ++number) {
    store->run([&](kv::Transaction& tx) { queue.add(tx, "t", "a", "{}"); });
    const auto attempt =
        store->run([&](kv::Transaction& tx) { return accept(queue, tx, types, {}).jobs.at(0).attempt(); });
    NotedStore noted(*store);
    Maintenance watching(queue, noted, clock);
    for (int i = 0; i < 4; ++i) {
      watching.step();
      clock.advance(seconds(1));
    }
    int begun = 0;
    bool updated = false;
    noted.on_begin = [&] {
      if (++begun != number || state("t") != State::running) return;
      updated = true;
      store->run([&](kv::Transaction& tx) { update(queue, tx, attempt); });
    };
    watching.step();
    EXPECT_EQ(state("t"), updated ? State::running : State::pending) << number;
    store->run([&](kv::Transaction& tx) { queue.remove(tx, "t", "a"); });
  }
}

// The retention of a job `a` of type `t`.
struct Retention : JobsMaintenance {
  void finish_one() {
    const auto job = run_one("t");
    store->run([&](kv::Transaction& tx) { finish(queue, tx, job.attempt()); });
  }
  bool is_kept() {
    return store->run([&](kv::Transaction& tx) { return queue.find(tx, "t", "a").has_value(); });
  }
};

TEST_F(Retention, CountsAtOnceWhenItIsMadeShorter) {
  finish_one();
  clock.advance(seconds(10));
  maintenance.step();
  set_type("t", {.retention = seconds(10)});
  // First the job ended exactly its retention ago, then longer ago.
  maintenance.step();
  EXPECT_TRUE(is_kept());
  set_type("t", {.retention = std::chrono::milliseconds(9999)});
  maintenance.step();
  EXPECT_FALSE(is_kept());
}

TEST_F(Retention, OfNothingPrunesWithTheNextStep) {
  set_type("t", {.retention = Duration(0)});
  maintenance.step();
  store->run([&](kv::Transaction& tx) {
    queue.add(tx, "t", "a", "{}");
    queue.cancel(tx, "t", "a");
  });
  clock.advance(std::chrono::milliseconds(1));
  maintenance.step();
  EXPECT_FALSE(is_kept());
}

// A job of a server whose clock is ahead is kept until this server's clock has reached its end and retention.
TEST_F(Retention, UsesTheWallClock) {
  ManualClock ahead(clock.wall_ms() + 1'000'000);
  Queue other(registry, ahead, rng);
  set_type("t", {.retention = seconds(100)});
  store->run([&](kv::Transaction& tx) {
    other.add(tx, "t", "a", "{}");
    other.cancel(tx, "t", "a");
  });
  for (int i = 0; i < 110; ++i) {
    EXPECT_TRUE(is_kept());
    clock.advance(seconds(10));
    maintenance.step();
  }
  for (int i = 0; i < 3; ++i) {
    clock.advance(seconds(10));
    maintenance.step();
  }
  EXPECT_FALSE(is_kept());
}

// The longest names, of bytes that keys escape: one transaction cannot remove 500 such jobs.
TEST_F(Retention, OfJobsWithLongNamesTakesSeveralTransactions) {
  const std::string type(kMaxNameBytes, '\0');
  set_type(type, {.backoff_min = Duration(0), .retention = seconds(1)});
  const std::vector<std::string> types{type};
  const auto each = [&](const std::function<void(kv::Transaction&, const Attempt&)>& end) {
    const auto accepted =
        store->run([&](kv::Transaction& tx) { return accept(queue, tx, types, {.limit = 100}).jobs; });
    store->run([&](kv::Transaction& tx) {
      for (const auto& job : accepted) end(tx, job.attempt());
    });
  };
  for (int i = 0; i < 500; i += 25) {
    store->run([&](kv::Transaction& tx) {
      for (int n = i; n < i + 25; ++n)
        queue.add(tx, type, std::string(kMaxNameBytes - 3, '\0') + fmt::format("{:03}", n), "1");
    });
    each([&](auto& tx, const Attempt& attempt) { fail(queue, tx, attempt, "no", {.delay = Duration(0)}); });
    each([&](auto& tx, const Attempt& attempt) { finish(queue, tx, attempt, {}, {}, "2"); });
  }
  const auto finished = [&] {
    return store->run([&](kv::Transaction& tx) { return queue.counts(tx, type)[State::finished]; });
  };
  EXPECT_EQ(finished(), 500);
  clock.advance(seconds(10));
  maintenance.step();
  EXPECT_EQ(finished(), 0);
}

// Jobs that cannot be pruned in one transaction.
struct LongPruning : JobsMaintenance {
  NotedStore noted{*store};
  Maintenance pruning{queue, noted, clock};

  void SetUp() override {
    set_type("t", {.retention = seconds(1)});
    for (int i = 0; i < 3000; i += 100) {
      store->run([&](kv::Transaction& tx) {
        for (int n = i; n < i + 100; ++n) {
          queue.add(tx, "t", std::to_string(n), "{}");
          queue.cancel(tx, "t", std::to_string(n));
        }
      });
    }
    clock.advance(seconds(10));
  }
  std::int64_t left() {
    return store->run([&](kv::Transaction& tx) { return queue.counts(tx, "t")[State::cancelled]; });
  }
};

TEST_F(LongPruning, ContinuesLaterIfTheNextStepIsDue) {
  noted.on_begin = [&] { clock.advance(seconds(1)); };
  const auto next = pruning.step();
  EXPECT_GE(clock.now(), next);
  const auto first = left();
  EXPECT_GT(first, 0);
  EXPECT_LT(first, 3000);
  for (int i = 0; i < 5; ++i) pruning.step();
  EXPECT_EQ(left(), 0);
}

TEST_F(LongPruning, EndsWithTheStop) {
  int begun = 0;
  noted.on_begin = [&] {
    if (++begun == 6) pruning.stop();
  };
  pruning.step();
  EXPECT_LE(begun, 7);
  EXPECT_GT(left(), 0);
}

}  // namespace
}  // namespace divan::jobs
