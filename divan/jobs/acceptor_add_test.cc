// Adds that hand their jobs over to waiters.
#include <exception>

#include "divan/jobs/acceptor.h"
#include "divan/jobs/testing.h"
#include "divan/kv/counting_testing.h"
#include "divan/kv/lossy_testing.h"

namespace divan::jobs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Adds : QueueTest {
  kv::testing::LossyStore lossy{*store};
  kv::testing::CountingStore counting{lossy};
  Acceptor acceptor{queue, counting, clock};

  void SetUp() override {
    in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "t", {}); });
  }

  struct Waiting {
    std::shared_ptr<int> woken = std::make_shared<int>(0);
    std::shared_ptr<Acceptor::Waiter> waiter;
  };
  Waiting join(std::vector<std::string> types = {"t"}, const AcceptOptions& options = {}) {
    Waiting waiting;
    waiting.waiter = acceptor.join(std::move(types), options, [woken = waiting.woken] { ++*woken; });
    return waiting;
  }
  // Joins, and waits: its first poll has found nothing.
  Waiting wait(std::vector<std::string> types = {"t"}, const AcceptOptions& options = {}) {
    auto waiting = join(std::move(types), options);
    EXPECT_FALSE(acceptor.step(waiting.waiter).done);
    *waiting.woken = 0;
    return waiting;
  }
  std::vector<std::string> take(const Waiting& waiting) {
    std::vector<std::string> ids;
    for (const auto& job : acceptor.step(waiting.waiter).jobs) ids.push_back(job.job.id);
    return ids;
  }

  // Returns true if an add would make a poll.
  bool hands_over() {
    const auto poll = acceptor.poll_for_add("t");
    if (!poll) return false;
    in_tx([&](kv::Transaction& tx) { acceptor.run_poll(*poll, tx); });
    acceptor.end_add_poll(*poll, nullptr);
    return true;
  }
  // Adds the job with a poll. Returns what end_add_poll() returned.
  bool add_with_poll(
      const std::string& id, const std::function<void()>& before_commit = [] {}) {
    const auto poll = acceptor.poll_for_add("t");
    EXPECT_TRUE(poll);
    std::exception_ptr failure;
    try {
      counting.run([&](kv::Transaction& tx) {
        queue.add(tx, "t", id, "{}", {});
        acceptor.run_poll(*poll, tx);
        before_commit();
      });
    } catch (...) { failure = std::current_exception(); }
    return acceptor.end_add_poll(*poll, std::move(failure));
  }
  State state(const std::string& id) {
    return in_tx([&](kv::Transaction& tx) { return queue.find(tx, "t", id)->state; });
  }
};

TEST_F(Adds, OneTransactionAddsAndAccepts) {
  const auto waiting = wait();
  const int begun = counting.begun;
  EXPECT_FALSE(add_with_poll("a"));
  EXPECT_EQ(*waiting.woken, 1);
  EXPECT_THAT(take(waiting), ElementsAre("a"));
  EXPECT_EQ(counting.begun, begun + 1);
  EXPECT_EQ(state("a"), State::running);
}

TEST_F(Adds, TheOtherWaitersNeedNoTransaction) {
  const auto first = wait(), second = wait(), third = wait();
  const int begun = counting.begun;
  add_with_poll("a");
  EXPECT_THAT(take(first), ElementsAre("a"));
  EXPECT_EQ(*second.woken, 1) << "it is the one that polls at intervals now";
  EXPECT_THAT(take(second), IsEmpty());
  EXPECT_EQ(*third.woken, 0);
  EXPECT_EQ(counting.begun, begun + 1);
  add_with_poll("b");
  EXPECT_THAT(take(second), ElementsAre("b"));
}

TEST_F(Adds, AWaiterIsWokenByTheNextJobOfAnotherStore) {
  const auto first = wait(), second = wait();
  add_with_poll("a");
  EXPECT_THAT(take(second), IsEmpty());
  *second.woken = 0;
  in_tx([&](kv::Transaction& tx) { queue.add(tx, "t", "b", "{}", {}); });
  EXPECT_EQ(*second.woken, 1) << "the transaction of the add has set a watch";
  EXPECT_THAT(take(second), ElementsAre("b"));
}

TEST_F(Adds, AJobThatIsAddedMeanwhileIsAccepted) {
  const auto first = wait(), second = wait();
  add_with_poll("a", [&] { in_tx([&](kv::Transaction& tx) { queue.add(tx, "t", "b", "{}", {}); }); });
  EXPECT_THAT(take(first), ElementsAre("a"));
  EXPECT_GE(*second.woken, 1);
  EXPECT_THAT(take(second), ElementsAre("b"));
}

TEST_F(Adds, TheFirstJobOfTheQueueIsAcceptedFirst) {
  const auto waiting = wait();
  const auto poll = acceptor.poll_for_add("t");
  ASSERT_TRUE(poll);
  in_tx([&](kv::Transaction& tx) { queue.add(tx, "t", "first", "{}", {.priority = -1}); });
  in_tx([&](kv::Transaction& tx) {
    queue.add(tx, "t", "a", "{}", {});
    acceptor.run_poll(*poll, tx);
  });
  EXPECT_FALSE(acceptor.end_add_poll(*poll, nullptr));
  EXPECT_THAT(take(waiting), ElementsAre("first"));
  EXPECT_THAT(take(join()), ElementsAre("a"));
}

TEST_F(Adds, NothingIsHandedOverUnlessAWaiterWaitsForTheTypeAlone) {
  EXPECT_FALSE(hands_over()) << "nobody waits";
  const auto both = wait({"t", "u"});
  const auto later = wait({"t"}, {.max_scheduled_at = kNow + 1000});
  EXPECT_FALSE(hands_over());
  const auto joined = join();
  EXPECT_FALSE(hands_over()) << "it polls itself";
  EXPECT_FALSE(acceptor.step(joined.waiter).done);
  EXPECT_TRUE(hands_over());
  in_tx([&](kv::Transaction& tx) { queue.add(tx, "t", "a", "{}", {}); });
  EXPECT_FALSE(hands_over()) << "it was woken";
  EXPECT_THAT(take(joined), ElementsAre("a"));
  EXPECT_FALSE(hands_over()) << "it is gone";
}

TEST_F(Adds, OneTransactionPollsAtATime) {
  const auto waiting = wait();
  const auto poll = acceptor.poll_for_add("t");
  ASSERT_TRUE(poll);
  EXPECT_FALSE(acceptor.poll_for_add("t"));
  EXPECT_FALSE(acceptor.next_step(waiting.waiter).poll);
  in_tx([&](kv::Transaction& tx) { acceptor.run_poll(*poll, tx); });
  acceptor.end_add_poll(*poll, nullptr);
  const int begun = counting.begun;
  EXPECT_THAT(take(waiting), IsEmpty());
  EXPECT_EQ(counting.begun, begun);
  EXPECT_TRUE(hands_over());
}

TEST_F(Adds, AWaiterThatLeavesGetsNoJob) {
  const auto waiting = wait();
  const auto poll = acceptor.poll_for_add("t");
  ASSERT_TRUE(poll);
  EXPECT_FALSE(acceptor.leave(waiting.waiter)) << "it may get a job";
  in_tx([&](kv::Transaction& tx) { acceptor.run_poll(*poll, tx); });
  acceptor.end_add_poll(*poll, nullptr);
  EXPECT_EQ(*waiting.woken, 1);
  EXPECT_FALSE(hands_over());
  EXPECT_TRUE(acceptor.leave(waiting.waiter));
}

TEST_F(Adds, AJobForAnAbandonedWaiterIsReleased) {
  const auto waiting = wait();
  add_with_poll("a", [&] { EXPECT_THAT(acceptor.abandon(waiting.waiter), IsEmpty()); });
  EXPECT_TRUE(acceptor.has_undelivered());
  acceptor.release_undelivered({});
  EXPECT_EQ(state("a"), State::pending);
  EXPECT_THAT(take(join()), ElementsAre("a"));
}

TEST_F(Adds, AnAddThatConflictsIsTriedAgainWithoutThePoll) {
  const auto abandoned = wait(), waiting = wait();
  lossy.before_commit = [&] {
    acceptor.abandon(abandoned.waiter);
    throw kv::Error(kv::ErrorCode::not_committed);
  };
  // The waiters do not wait for the retry.
  int tries = 0;
  EXPECT_FALSE(add_with_poll("a", [&] { EXPECT_EQ(*waiting.woken > 0, tries++ > 0); }));
  EXPECT_EQ(tries, 2);
  EXPECT_EQ(state("a"), State::pending);
  EXPECT_FALSE(acceptor.has_undelivered());
  EXPECT_THAT(take(waiting), ElementsAre("a"));
}

TEST_F(Adds, AnAddThatFailsLeavesTheWaiters) {
  const auto waiting = wait();
  const auto poll = acceptor.poll_for_add("t");
  ASSERT_TRUE(poll);
  EXPECT_FALSE(acceptor.end_add_poll(*poll, std::make_exception_ptr(bad_request("no job"))))
      << "the poll was not made";
  EXPECT_EQ(*waiting.woken, 1);
  EXPECT_THAT(take(waiting), IsEmpty());

  lossy.before_commit = [&] { throw kv::Error(kv::ErrorCode::transaction_too_large); };
  EXPECT_TRUE(add_with_poll("a")) << "the poll may be why";
  EXPECT_THAT(take(waiting), IsEmpty());
  EXPECT_TRUE(hands_over());
}

// It has joined during a poll that left a job for nobody, and was not woken since.
TEST_F(Adds, AWaiterThatHasJustJoinedPollsAfterAnAddThatFails) {
  const auto first = wait();
  auto poll = acceptor.poll_for_add("t");
  const auto joined = join({"t"}, {.worker = workers::WorkerRef{"r", "nobody", ""}});
  EXPECT_FALSE(acceptor.next_step(joined.waiter).poll) << "the add polls";
  in_tx([&](kv::Transaction& tx) { acceptor.run_poll(*poll, tx); });
  acceptor.end_add_poll(*poll, nullptr);
  poll = acceptor.poll_for_add("t");
  ASSERT_TRUE(poll);
  acceptor.end_add_poll(*poll, std::make_exception_ptr(bad_request("no job")));
  EXPECT_THAT(take(first), IsEmpty());
  EXPECT_THROW(acceptor.step(joined.waiter), Error) << "its worker is not registered";
}

TEST_F(Adds, AWaiterWhoseWorkerIsGoneFails) {
  const auto worker = in_tx([&](kv::Transaction& tx) { return registry.add(tx, "r", "w", "{}"); });
  const auto waiting = wait({"t"}, {.worker = worker});
  in_tx([&](kv::Transaction& tx) { registry.remove(tx, worker); });
  EXPECT_FALSE(add_with_poll("a"));
  EXPECT_EQ(state("a"), State::pending);
  EXPECT_THROW(acceptor.step(waiting.waiter), Error);
  EXPECT_THAT(take(join()), ElementsAre("a"));
}

}  // namespace
}  // namespace divan::jobs
