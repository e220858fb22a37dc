// When acceptors poll again, and what they do about a commit whose outcome is unknown.
#include <utility>

#include "divan/jobs/acceptor.h"
#include "divan/jobs/testing.h"
#include "divan/kv/counting_testing.h"
#include "divan/kv/forwarding.h"
#include "divan/kv/lossy_testing.h"
#include "divan/kv/unwatched_testing.h"

namespace divan::jobs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct AcceptorFaults : QueueTest {
  const std::vector<std::string> types{"t"};

  void SetUp() override { set_type({}); }
  void set_type(const TypeSettings& settings) {
    in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "t", settings); });
  }
  void add(const std::string& id, const Queue::AddOptions& options = {}) {
    in_tx([&](kv::Transaction& tx) { queue.add(tx, "t", id, "{}", options); });
  }
  Job job(const std::string& id) {
    return in_tx([&](kv::Transaction& tx) { return queue.find(tx, "t", id).value(); });
  }
};

TEST_F(AcceptorFaults, WithoutWatchesTheQueueIsPolledEveryFiveSeconds) {
  kv::testing::UnwatchedStore unwatched(*store);
  Acceptor acceptor(queue, unwatched, clock);
  int woken = 0;
  const auto waiter = acceptor.join(types, {}, [&] { ++woken; });
  const auto waits = acceptor.step(waiter);
  EXPECT_FALSE(waits.done);
  EXPECT_EQ(waits.poll_at, clock.now() + seconds(5));
  add("a");
  clock.advance(milliseconds(4999));
  EXPECT_FALSE(acceptor.step(waiter).done) << "there is no watch on the queue";
  EXPECT_EQ(woken, 0);
  clock.advance(milliseconds(1));
  EXPECT_TRUE(acceptor.step(waiter).done);
}

TEST_F(AcceptorFaults, TheQueueIsPolledNeitherBeforeAJobIsDueNorLongAfter) {
  Acceptor acceptor(queue, *store, clock);
  const auto waiter = acceptor.join(types, {}, [] {});
  EXPECT_EQ(acceptor.step(waiter).poll_at, clock.now() + seconds(5));
  add("later", {.scheduled_at = clock.wall_ms() + 2000});
  EXPECT_EQ(acceptor.step(waiter).poll_at, clock.now() + milliseconds(2000));
  clock.advance(milliseconds(1500));
  EXPECT_EQ(acceptor.step(waiter).poll_at, clock.now() + milliseconds(500)) << "nothing has happened";
  clock.advance(milliseconds(500));
  EXPECT_TRUE(acceptor.step(waiter).done);
}

TEST_F(AcceptorFaults, APausedTypeYieldsNoJobsAndItsAcceptorsWakeWhenItIsResumed) {
  Acceptor acceptor(queue, *store, clock);
  set_type({.paused = true});
  add("a");
  bool woken = false;
  const auto waiter = acceptor.join(types, {}, [&] { woken = true; });
  EXPECT_FALSE(acceptor.step(waiter).done);
  woken = false;
  add("b");
  EXPECT_FALSE(acceptor.step(waiter).done);
  clock.advance(seconds(5));
  EXPECT_FALSE(acceptor.step(waiter).done) << "a poll does not find its jobs either";
  woken = false;
  set_type({});
  EXPECT_TRUE(woken);
  const auto found = acceptor.step(waiter);
  ASSERT_EQ(found.jobs.size(), 1u);
  EXPECT_EQ(found.jobs[0].job.id, "a");
}

TEST_F(AcceptorFaults, AWaiterGetsNoJobsOnceItsTypeIsPaused) {
  Acceptor acceptor(queue, *store, clock);
  const auto waiter = acceptor.join(types, {}, [] {});
  EXPECT_FALSE(acceptor.step(waiter).done);
  set_type({.paused = true});
  add("a");
  EXPECT_FALSE(acceptor.step(waiter).done);
  EXPECT_EQ(job("a").state, State::pending);
}

// A store that reports an error for the next commit of writes, and makes that commit later.
class LateStore final : public kv::ForwardingDatabase {
 public:
  using ForwardingDatabase::ForwardingDatabase;
  std::unique_ptr<kv::Transaction> begin() override {
    ++begun;
    return std::make_unique<Late>(*this, inner().begin());
  }
  void commit_late() { std::exchange(late_, nullptr)->commit(); }
  bool delays_next_write = false;
  int begun = 0;

 private:
  class Late final : public kv::ForwardingTransaction {
   public:
    Late(LateStore& store, std::unique_ptr<kv::Transaction> inner)
        : ForwardingTransaction(std::move(inner)), store_(store) {}

    void on_error(const kv::Error& error) override {
      if (taken_) throw kv::Error(error);
      ForwardingTransaction::on_error(error);
    }

   protected:
    std::string do_commit() override {
      if (read_only() || !std::exchange(store_.delays_next_write, false))
        return ForwardingTransaction::do_commit();
      store_.late_ = take_inner();
      taken_ = true;
      throw kv::Error(kv::ErrorCode::io_error);
    }

   private:
    LateStore& store_;
    bool taken_ = false;
  };
  std::unique_ptr<kv::Transaction> late_;
};

TEST_F(AcceptorFaults, AJobWhoseAcceptIsCommittedAfterItsErrorIsReleased) {
  LateStore late(*store);
  Acceptor acceptor(queue, late, clock);
  add("a");
  const auto waiter = acceptor.join(types, {}, [] {});
  late.delays_next_write = true;
  EXPECT_THROW(acceptor.step(waiter), kv::Error);
  EXPECT_EQ(job("a").state, State::pending);
  // Releasing the job had no effect, since the attempt had not begun at that time.
  late.commit_late();
  EXPECT_EQ(job("a").state, State::running);
  const auto found = acceptor.step(acceptor.join(types, {}, [] {}));
  ASSERT_EQ(found.jobs.size(), 1u);
  // Its first attempt was released, which does not count.
  EXPECT_EQ(found.jobs[0].job.attempt, 1);
  EXPECT_EQ(found.jobs[0].job.history, 1);
}

TEST_F(AcceptorFaults, AJobThatAnAddHandsOverAfterItsErrorIsReleased) {
  LateStore late(*store);
  Acceptor acceptor(queue, late, clock);
  const auto waiter = acceptor.join(types, {}, [] {});
  EXPECT_FALSE(acceptor.step(waiter).done);
  const auto poll = acceptor.poll_for_add("t");
  ASSERT_TRUE(poll);
  late.delays_next_write = true;
  std::exception_ptr failure;
  try {
    late.run([&](kv::Transaction& tx) {
      queue.add(tx, "t", "a", "{}", {});
      acceptor.run_poll(*poll, tx);
    });
  } catch (const kv::Error&) { failure = std::current_exception(); }
  ASSERT_TRUE(failure);
  EXPECT_FALSE(acceptor.end_add_poll(*poll, failure)) << "the job may be added twice";
  EXPECT_THROW(acceptor.step(waiter), kv::Error);
  late.commit_late();
  EXPECT_EQ(job("a").state, State::running);
  const auto found = acceptor.step(acceptor.join(types, {}, [] {}));
  ASSERT_EQ(found.jobs.size(), 1u);
  EXPECT_EQ(found.jobs[0].job.attempt, 1);
}

TEST_F(AcceptorFaults, JobsOfAPollThatWasRefusedAreNotReleased) {
  kv::testing::LossyStore refusing(*store);
  kv::testing::CountingStore counting(refusing);
  Acceptor acceptor(queue, counting, clock);
  add("a");
  refusing.before_commit = [] { throw kv::Error(kv::ErrorCode::transaction_too_large); };
  EXPECT_THROW(acceptor.step(acceptor.join(types, {}, [] {})), kv::Error);
  EXPECT_EQ(counting.begun, 1) << "only the poll";
  EXPECT_EQ(job("a").state, State::pending);
}

TEST_F(AcceptorFaults, AnAcceptThatIsNotCommittedWithinAMinuteIsDropped) {
  LateStore late(*store);
  Acceptor acceptor(queue, late, clock);
  const auto tries = [&] {
    late.begun = 0;
    acceptor.release_undelivered({});
    return late.begun;
  };
  add("a");
  late.delays_next_write = true;
  EXPECT_THROW(acceptor.step(acceptor.join(types, {}, [] {})), kv::Error);
  clock.advance(seconds(59));
  EXPECT_EQ(tries(), 1);
  clock.advance(seconds(1));
  EXPECT_EQ(tries(), 1);
  EXPECT_EQ(tries(), 0);
}

}  // namespace
}  // namespace divan::jobs
