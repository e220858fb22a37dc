#include "divan/jobs/acceptor.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "divan/jobs/listing.h"
#include "divan/jobs/testing.h"
#include "divan/kv/counting_testing.h"

namespace divan::jobs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

struct Acceptors : QueueTest {
  Acceptor acceptor{queue, *store, clock};
  const std::vector<std::string> types{"t"};

  void SetUp() override {
    store->run([&](kv::Transaction& tx) { queue.set_type(tx, "t", {}); });
  }
  void add(const std::string& id, const Queue::AddOptions& options = {}) {
    store->run([&](kv::Transaction& tx) { queue.add(tx, "t", id, "{}", options); });
  }
  State state(const std::string& id) {
    return store->run([&](kv::Transaction& tx) { return queue.find(tx, "t", id)->state; });
  }

  // A waiter for jobs of type "t", and how often it was woken.
  struct Waiting {
    std::shared_ptr<int> woken = std::make_shared<int>(0);
    std::shared_ptr<Acceptor::Waiter> waiter;
  };
  Waiting join(const AcceptOptions& options = {}) {
    Waiting waiting;
    waiting.waiter = acceptor.join(types, options, [woken = waiting.woken] { ++*woken; });
    return waiting;
  }
  // The ids of the jobs that the waiter gets; nullopt while it waits.
  std::optional<std::vector<std::string>> step(const Waiting& waiting) {
    const auto found = acceptor.step(waiting.waiter);
    if (!found.done) return std::nullopt;
    std::vector<std::string> ids;
    for (const auto& job : found.jobs) ids.push_back(job.job.id);
    return ids;
  }
  std::vector<Waiting> join_all(int length, const AcceptOptions& options = {}) {
    std::vector<Waiting> waiting;
    for (int i = 0; i < length; ++i) {
      waiting.push_back(join(options));
      EXPECT_EQ(step(waiting.back()), std::nullopt);
    }
    for (const auto& one : waiting) *one.woken = 0;
    return waiting;
  }
};

TEST_F(Acceptors, AllFailIfTheirTypeIsRemoved) {
  const AcceptOptions strict{.limit = kMaxAcceptLimit, .must_be_declared = true};
  const auto waiting = join_all(3, strict);
  const auto patient = join();
  EXPECT_EQ(step(patient), std::nullopt);
  store->run([&](kv::Transaction& tx) { queue.remove_type(tx, "t", false); });
  EXPECT_GE(*waiting[0].woken, 1);
  for (const auto& one : waiting) {
    EXPECT_THROW(step(one), Error);
    EXPECT_GE(*one.woken, 1);
  }
  EXPECT_EQ(step(patient), std::nullopt);
  // So do waiters that join now, whether or not their worker is registered.
  EXPECT_THROW(step(join(strict)), Error);
  auto unregistered = strict;
  unregistered.worker = workers::WorkerRef{"r", "nobody", {}};
  try {
    step(join(unregistered));
    ADD_FAILURE() << "The waiter waits.";
  } catch (const Error& error) { EXPECT_EQ(error.name(), "no_such_job_type"); }
}

TEST_F(Acceptors, OneJobWakesOneOfThem) {
  const auto waiting = join_all(5);
  add("a");
  EXPECT_EQ(*waiting[0].woken, 1);
  EXPECT_THAT(step(waiting[0]), testing::Optional(ElementsAre("a")));
  add("b");
  // The next one may have been woken when the first left, and then again.
  EXPECT_GE(*waiting[1].woken, 1);
  EXPECT_THAT(step(waiting[1]), testing::Optional(ElementsAre("b")));
  for (const int other : {3, 4}) EXPECT_EQ(*waiting[static_cast<std::size_t>(other)].woken, 0) << other;
}

TEST_F(Acceptors, OnePollServesAllInTheirOrder) {
  const auto waiting = join_all(3, {.limit = 2});
  const auto commits = store->stats().commits;
  store->run([&](kv::Transaction& tx) {
    for (const char* id : {"1", "2", "3", "4", "5"}) queue.add(tx, "t", id, "{}");
  });
  EXPECT_THAT(step(waiting[1]), testing::Optional(ElementsAre("3", "4")));
  EXPECT_THAT(step(waiting[0]), testing::Optional(ElementsAre("1", "2")));
  EXPECT_THAT(step(waiting[2]), testing::Optional(ElementsAre("5")));
  EXPECT_EQ(store->stats().commits - commits, 2u);  // of the add and of the poll
}

// A poll for one waiter alone may do something first, in the same transaction.
struct AcceptorsWithFirst : Acceptors {
  int ran = 0;
  // Makes the poll for the waiter, which writes a row.
  void poll_with_row(const Waiting& one) {
    const auto next = acceptor.next_step(one.waiter, 0);
    ASSERT_TRUE(next.poll);
    store->run([&](kv::Transaction& tx) {
      acceptor.run_poll(*next.poll, tx, [&](kv::Transaction& same) {
        ++ran;
        same.set("row", "x");
      });
    });
    acceptor.end_poll(*next.poll, nullptr);
  }
  bool has_row() {
    return store->run([&](kv::Transaction& tx) { return tx.get("row").has_value(); });
  }
  void TearDown() override {}  // that row is not of the queue
};

TEST_F(AcceptorsWithFirst, TheFunctionRunsInThePollOfItsWaiterAlone) {
  const auto waiting = join_all(2);
  add("a");
  const auto one = join();
  const auto commits = store->stats().commits;
  poll_with_row(one);
  EXPECT_TRUE(has_row());
  EXPECT_EQ(store->stats().commits - commits, 1u);
  EXPECT_THAT(step(one), testing::Optional(ElementsAre("a")));
  EXPECT_EQ(step(waiting[0]), std::nullopt);
}

// Another poll is made for a waiter that has joined meanwhile.
TEST_F(AcceptorsWithFirst, APollForOneSaysNothingAboutOthers) {
  const auto one = join();
  const auto lost = join({.worker = workers::WorkerRef{"r", "nobody", ""}});
  poll_with_row(one);
  EXPECT_EQ(step(one), std::nullopt);
  EXPECT_GE(*lost.woken, 1);
  EXPECT_THROW(step(lost), Error);
}

TEST_F(AcceptorsWithFirst, TheFunctionDoesNotRunIfTheWorkerIsNotRegistered) {
  const auto lost = join({.worker = workers::WorkerRef{"r", "nobody", ""}});
  poll_with_row(lost);
  EXPECT_EQ(ran, 0);
  EXPECT_FALSE(has_row());
  EXPECT_THROW(step(lost), Error);
}

TEST_F(Acceptors, APollThatItsCallerMakesRequestsAsManyJobsAsItAllows) {
  const auto waiting = join_all(3);
  store->run([&](kv::Transaction& tx) {
    for (const char* id : {"1", "2", "3"}) queue.add(tx, "t", id, "{}");
  });
  const auto poll_for = [&](const Waiting& one) {
    const auto next = acceptor.next_step(one.waiter, 2);
    ASSERT_TRUE(next.poll);
    EXPECT_FALSE(acceptor.next_step(waiting[1].waiter, 2).poll) << "two polls at once";
    store->run([&](kv::Transaction& tx) { acceptor.run_poll(*next.poll, tx); });
    acceptor.end_poll(*next.poll, nullptr);
  };
  poll_for(waiting[0]);
  EXPECT_THAT(step(waiting[0]), testing::Optional(ElementsAre("1")));
  EXPECT_THAT(step(waiting[1]), testing::Optional(ElementsAre("2")));
  EXPECT_EQ(state("3"), State::pending);
  EXPECT_GE(*waiting[2].woken, 1);
  EXPECT_THAT(step(waiting[2]), testing::Optional(ElementsAre("3")));
}

TEST_F(Acceptors, APollWhoseTransactionFailsFailsItsWaiters) {
  const auto waiting = join();
  const auto next = acceptor.next_step(waiting.waiter);
  ASSERT_TRUE(next.poll);
  acceptor.end_poll(*next.poll, std::make_exception_ptr(kv::Error(kv::ErrorCode::io_error)));
  EXPECT_THROW(acceptor.next_step(waiting.waiter), kv::Error);
}

TEST_F(Acceptors, ANewWaiterIsPolledForAtOnce) {
  add("a");
  EXPECT_THAT(step(join()), testing::Optional(ElementsAre("a")));
  const auto waiting = join_all(2);
  add("b");
  // Even before the waiters that were woken call step().
  EXPECT_EQ(step(join()), std::nullopt);
  EXPECT_THAT(step(waiting[0]), testing::Optional(ElementsAre("b")));
}

TEST_F(Acceptors, WhenTheFirstLeavesTheNextPollsAtItsTime) {
  add("later", {.scheduled_at = clock.wall_ms() + 2000});
  const auto waiting = join_all(2);
  EXPECT_LE(acceptor.step(waiting[0].waiter).poll_at, clock.now() + milliseconds(2000));
  EXPECT_EQ(acceptor.step(waiting[1].waiter).poll_at, MonotonicTime::max());
  EXPECT_TRUE(acceptor.leave(waiting[0].waiter));
  EXPECT_EQ(*waiting[1].woken, 1);
  EXPECT_LE(acceptor.step(waiting[1].waiter).poll_at, clock.now() + milliseconds(2000));
  clock.advance(milliseconds(2000));
  EXPECT_THAT(step(waiting[1]), testing::Optional(ElementsAre("later")));
}

TEST_F(Acceptors, OnlyTheWaiterWhoseWorkerIsNotRegisteredFails) {
  const auto ref = store->run([&](kv::Transaction& tx) { return registry.add(tx, "r", "w", "{}"); });
  const auto with_worker = join({.worker = ref});
  EXPECT_EQ(step(with_worker), std::nullopt);
  const auto waiting = join_all(1);
  EXPECT_THROW(acceptor.step(join({.worker = workers::WorkerRef{"r", "nobody", ""}}).waiter), Error);
  store->run([&](kv::Transaction& tx) { registry.remove(tx, ref); });
  add("a");
  EXPECT_THROW(acceptor.step(with_worker.waiter), Error);
  EXPECT_THAT(step(waiting[0]), testing::Optional(ElementsAre("a")));
}

TEST_F(Acceptors, JobsOfAnAbandonedWaiterCanBeReleased) {
  const auto waiting = join_all(2);
  add("a");
  EXPECT_EQ(step(waiting[1]), std::nullopt);  // polls, for the first, too
  EXPECT_EQ(state("a"), State::running);
  EXPECT_FALSE(acceptor.leave(waiting[0].waiter));
  acceptor.release_undelivered(acceptor.abandon(waiting[0].waiter));
  EXPECT_EQ(state("a"), State::pending);
  EXPECT_THAT(step(waiting[1]), testing::Optional(ElementsAre("a")));
}

TEST_F(Acceptors, JobsToBeReleasedLaterAreReleasedByTheNextPoll) {
  const auto waiting = join_all(2);
  add("a");
  EXPECT_EQ(step(waiting[1]), std::nullopt);
  acceptor.release_undelivered_later(acceptor.abandon(waiting[0].waiter));
  EXPECT_EQ(state("a"), State::running);
  EXPECT_EQ(step(join()), std::nullopt);
  EXPECT_THAT(step(waiting[1]), testing::Optional(ElementsAre("a")));
}

TEST_F(Acceptors, WaitersThatHaveLeftGetNoJobs) {
  auto waiting = join_all(3);
  acceptor.abandon(waiting[0].waiter);
  EXPECT_TRUE(acceptor.leave(waiting[1].waiter));
  add("a");
  EXPECT_THAT(step(waiting[2]), testing::Optional(ElementsAre("a")));
}

TEST_F(Acceptors, OtherTypesAndTimesHaveOtherWaitQueues) {
  store->run([&](kv::Transaction& tx) { queue.set_type(tx, "u", {}); });
  const auto waiting = join_all(1);
  const auto woken = std::make_shared<bool>(false);  // a closing store wakes it, too
  const auto other = acceptor.join({"u"}, {}, [woken] { *woken = true; });
  EXPECT_FALSE(acceptor.step(other).done);
  const auto ahead = join({.max_scheduled_at = clock.wall_ms() + 5000});
  EXPECT_EQ(step(ahead), std::nullopt);
  add("later", {.scheduled_at = clock.wall_ms() + 3000});
  EXPECT_FALSE(*woken);
  EXPECT_EQ(step(waiting[0]), std::nullopt);
  EXPECT_THAT(step(ahead), testing::Optional(ElementsAre("later")));
}

TEST_F(Acceptors, JobsBeyondTheLimitOfATransactionAreAcceptedByTheNext) {
  store->run([&](kv::Transaction& tx) {
    for (std::size_t i = 0; i < kMaxAcceptLimit + 10; ++i) queue.add(tx, "t", std::nullopt, "{}");
  });
  const auto first = join({.limit = kMaxAcceptLimit - 5});
  const auto second = join({.limit = kMaxAcceptLimit});
  EXPECT_EQ(step(first)->size(), kMaxAcceptLimit - 5);
  EXPECT_EQ(step(second)->size(), 5u);
  EXPECT_EQ(step(join({.limit = 100}))->size(), 10u);
}

TEST_F(Acceptors, JobsWithLargeDataAreAcceptedInSeveralTransactions) {
  const std::string data = "\"" + std::string(3'000'000, 'x') + "\"";
  for (const char* id : {"a", "b", "c", "d", "e"})
    store->run([&](kv::Transaction& tx) { queue.add(tx, "t", id, data); });
  EXPECT_EQ(step(join({.limit = 5}))->size(), 3u);
  EXPECT_EQ(step(join({.limit = 5}))->size(), 2u);
}

TEST_F(Acceptors, APollIncludesTheWaiterThatMakesItBehindLargeRequests) {
  const auto many = join({.limit = kMaxAcceptLimit});
  EXPECT_EQ(step(many), std::nullopt);
  const auto behind = join();
  EXPECT_EQ(step(behind), std::nullopt);
  EXPECT_TRUE(acceptor.leave(behind.waiter));
  EXPECT_TRUE(acceptor.leave(many.waiter));
}

TEST_F(Acceptors, AWaiterThatWantsToLeaveDuringAPollIsWokenAfterIt) {
  std::optional<bool> left;
  std::shared_ptr<Acceptor::Waiter> leaving;
  Acceptor* polling = nullptr;
  EventfulStore eventful(*store, 1, [&] { left = polling->leave(leaving); });
  Acceptor acceptor_of_it(queue, eventful, clock);
  polling = &acceptor_of_it;
  int woken = 0;
  leaving = polling->join(types, {}, [&] { ++woken; });
  const auto first = polling->join(types, {}, [] {});
  EXPECT_FALSE(polling->step(first).done);
  EXPECT_EQ(left, false);
  EXPECT_GE(woken, 1);
  EXPECT_TRUE(polling->leave(leaving));
}

// A store in which a commit of writes is made and then fails, and which can be broken.
class UnluckyStore final : public kv::ForwardingDatabase {
 public:
  using ForwardingDatabase::ForwardingDatabase;
  std::unique_ptr<kv::Transaction> begin() override {
    if (broken) throw kv::Error(kv::ErrorCode::io_error);
    return std::make_unique<Unlucky>(*this, inner().begin());
  }
  std::function<void()> after_write;  // called once, after the next commit of writes; may throw
  bool broken = false;

 private:
  class Unlucky final : public kv::ForwardingTransaction {
   public:
    Unlucky(UnluckyStore& store, std::unique_ptr<kv::Transaction> inner)
        : ForwardingTransaction(std::move(inner)), store_(store) {}

   protected:
    std::string do_commit() override {
      const bool writes = !read_only();
      auto stamp = ForwardingTransaction::do_commit();
      if (writes && store_.after_write) std::exchange(store_.after_write, nullptr)();
      return stamp;
    }

   private:
    UnluckyStore& store_;
  };
};

TEST_F(Acceptors, JobsOfAPollWithAnUnknownOutcomeAreReleased) {
  UnluckyStore unlucky(*store);
  Acceptor cautious(queue, unlucky, clock);
  add("a");
  const auto waiter = cautious.join(types, {}, [] {});
  unlucky.after_write = [] { throw kv::Error(kv::ErrorCode::io_error); };
  EXPECT_THROW(cautious.step(waiter), kv::Error);
  EXPECT_EQ(state("a"), State::pending);
}

TEST_F(Acceptors, JobsThatCannotBeReleasedAreReleasedByTheNextPoll) {
  UnluckyStore unlucky(*store);
  Acceptor cautious(queue, unlucky, clock);
  add("a");
  const auto waiter = cautious.join(types, {}, [] {});
  unlucky.after_write = [&] {
    unlucky.broken = true;
    throw kv::Error(kv::ErrorCode::io_error);
  };
  EXPECT_THROW(cautious.step(waiter), kv::Error);
  EXPECT_EQ(state("a"), State::running);
  unlucky.broken = false;
  const auto found = cautious.step(cautious.join(types, {}, [] {}));
  ASSERT_EQ(found.jobs.size(), 1u);
  EXPECT_EQ(found.jobs[0].job.id, "a");
  EXPECT_EQ(found.jobs[0].job.attempt, 1);
  EXPECT_EQ(found.jobs[0].job.history, 1);
}

TEST_F(Acceptors, AWaiterThatCannotBeWokenLosesItsJobsToOthers) {
  const auto deaf = acceptor.join(types, {}, [] { throw std::bad_alloc(); });
  EXPECT_FALSE(acceptor.step(deaf).done);
  const auto waiting = join_all(2);
  store->run([&](kv::Transaction& tx) {
    for (const char* id : {"1", "2", "3"}) queue.add(tx, "t", id, "{}");
  });
  EXPECT_THAT(step(waiting[1]), testing::Optional(ElementsAre("3")));
  EXPECT_GE(*waiting[0].woken, 1);
  EXPECT_THAT(step(waiting[0]), testing::Optional(ElementsAre("2")));
  EXPECT_EQ(state("1"), State::pending);
  // Its next step() returns no jobs.
  const auto found = acceptor.step(deaf);
  EXPECT_TRUE(found.done);
  EXPECT_TRUE(found.jobs.empty());
}

struct AcceptorsOfManyPriorities : Acceptors {
  static constexpr int kPriorities = 1000;
  kv::testing::CountingStore scanned{*store};
  Acceptor polling{queue, scanned, clock};

  void SetUp() override {
    Acceptors::SetUp();
    // For each priority a job that is not due yet.
    store->run([&](kv::Transaction& tx) {
      for (int i = 0; i < kPriorities; ++i) {
        queue.add(tx, "t", fmt::format("later{}", i), "{}",
                  {.scheduled_at = clock.wall_ms() + 1000 * (i + 1), .priority = i});
      }
    });
  }
  // The ids of the jobs that a new waiter gets, and the number of scans that this takes.
  std::pair<std::string, int> poll(std::size_t limit = 1) {
    scanned.scans = 0;
    const auto waiter = polling.join(types, {.limit = limit}, [] {});
    const auto found = polling.step(waiter);
    if (!found.done) polling.leave(waiter);
    std::string ids;
    for (const auto& job : found.jobs) ids += (ids.empty() ? "" : " ") + job.job.id;
    return {ids, scanned.scans.load()};
  }
};

TEST_F(AcceptorsOfManyPriorities, AreScannedOnceForAllWaiters) {
  EXPECT_EQ(poll(), std::pair(std::string(), kPriorities + 1));
  EXPECT_EQ(poll(), std::pair(std::string(), 1));
  clock.advance(seconds(1));
  EXPECT_EQ(poll(), std::pair(std::string("later0"), 1));
  clock.advance(milliseconds(1));
  EXPECT_EQ(poll().first, "");
  EXPECT_EQ(poll(), std::pair(std::string(), 1));
}

TEST_F(AcceptorsOfManyPriorities, AreScannedOnceForAllJobsBehindThem) {
  store->run([&](kv::Transaction& tx) {
    for (int i = 0; i < 50; ++i)
      queue.add(tx, "t", fmt::format("behind{:02}", i), "{}", {.priority = kPriorities + 1});
  });
  EXPECT_EQ(poll(), std::pair(std::string("behind00"), kPriorities + 1));
  for (int i = 1; i < 50; ++i) EXPECT_EQ(poll(), std::pair(fmt::format("behind{:02}", i), 1));
  EXPECT_EQ(poll(), std::pair(std::string(), 1));
}

TEST_F(AcceptorsOfManyPriorities, AreNotAllScannedOnceAJobIsFound) {
  for (const int priority : {0, 700}) add(fmt::format("now{}", priority), {.priority = priority});
  const auto [ids, scans] = poll(10);
  EXPECT_EQ(ids, "now0");
  EXPECT_LE(scans, 102);
  const auto [more, more_scans] = poll(10);
  EXPECT_EQ(more, "now700");
  EXPECT_LE(more_scans, 702);
  EXPECT_EQ(poll(10).first, "");
  EXPECT_EQ(poll(10), std::pair(std::string(), 1));
}

// A poll for both waiters ends before it has scanned up to the second job: the other waiter polls again at
// once.
TEST_F(AcceptorsOfManyPriorities, AJobBeyondTheEndOfAScanIsPolledForAtOnce) {
  const auto first = polling.join(types, {}, [] {});
  const auto second = polling.join(types, {}, [] {});
  for (const auto& waiter : {first, second}) EXPECT_FALSE(polling.step(waiter).done);
  store->run([&](kv::Transaction& tx) {
    for (const int priority : {0, 700})
      queue.add(tx, "t", fmt::format("now{}", priority), "{}", {.priority = priority});
  });
  const auto soon = polling.step(first);
  ASSERT_EQ(soon.jobs.size(), 1u);
  EXPECT_EQ(soon.jobs[0].job.id, "now0");
  const auto later = polling.step(second);
  ASSERT_EQ(later.jobs.size(), 1u);
  EXPECT_EQ(later.jobs[0].job.id, "now700");
}

// Whatever cursors are kept, a poll returns the first of the jobs that a scan of the whole queue returns.
TEST_F(AcceptorsOfManyPriorities, AreAcceptedInTheOrderOfAScanOfAll) {
  SeededRng dice(7);
  const auto below = [&](int n) { return static_cast<int>(dice.below(static_cast<std::uint64_t>(n))); };
  int accepted = 0;
  for (int round = 0; round < 400; ++round) {
    for (int i = below(3); i > 0; --i) {
      add(fmt::format("j{}", below(300)),
          {.scheduled_at = below(2) ? clock.wall_ms() + below(5000) : 0, .priority = below(kPriorities)});
    }
    if (below(3) == 0) clock.advance(milliseconds(below(3000)));
    auto due = store->run([&](kv::Transaction& tx) {
      return list_jobs(queue, tx, "t", {.state = State::pending, .limit = SIZE_MAX}).jobs;
    });
    std::erase_if(due, [&](const Job& job) { return job.due_at > clock.wall_ms(); });
    std::sort(due.begin(), due.end(), [](const Job& a, const Job& b) {
      return std::tie(a.priority, a.due_at, a.id) < std::tie(b.priority, b.due_at, b.id);
    });
    std::string expected;
    for (const auto& job : due) expected += (expected.empty() ? "" : " ") + job.id;
    const auto ids = poll(1 + static_cast<std::size_t>(below(4))).first;
    ASSERT_EQ(ids.empty(), expected.empty()) << round;
    ASSERT_TRUE((expected + " ").starts_with(ids + (ids.empty() ? "" : " "))) << ids << " of " << expected;
    accepted += !ids.empty();
  }
  EXPECT_GT(accepted, 100);
}

TEST_F(Acceptors, OfOneProcessNeverConflict) {
  constexpr int kJobs = 300, kThreads = 4;
  for (int i = 0; i < kJobs; ++i) add("j" + std::to_string(i));
  std::atomic<int> accepted{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (;;) {
        const auto jobs = acceptor.accept(types, {.limit = 2}, MonotonicTime::max());
        if (jobs.empty()) return;
        if ((accepted += static_cast<int>(jobs.size())) == kJobs) acceptor.interrupt();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(accepted, kJobs);
  EXPECT_EQ(store->stats().conflicts, 0u);
}

}  // namespace
}  // namespace divan::jobs
