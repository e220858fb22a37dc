// Builds that begin in the commit that requests them, and end in the one that writes the last rows.
#include <fmt/core.h>

#include "divan/index/views/views_testing.h"
#include "divan/jobs/listing.h"
#include "divan/kv/lossy_testing.h"
#include "divan/kv/tiring_testing.h"

namespace divan::index::views {
namespace {

using testing::PassingClock;

// Calls a function before a transaction begins, or before it commits.
class HookedStore final : public kv::ForwardingDatabase {
 public:
  using ForwardingDatabase::ForwardingDatabase;
  std::unique_ptr<kv::Transaction> begin() override {
    pass();
    return std::make_unique<Hooked>(inner().begin(), *this);
  }
  void before(int point, std::function<void()> hook) {
    hook_ = std::move(hook);
    left_ = point;
  }
  // Returns true if the point was reached.
  bool reached() const { return left_ < 0; }

 private:
  class Hooked final : public kv::ForwardingTransaction {
   public:
    Hooked(std::unique_ptr<kv::Transaction> inner, HookedStore& store)
        : ForwardingTransaction(std::move(inner)), store_(store) {}

   protected:
    std::string do_commit() override {
      if (!read_only()) store_.pass();
      return ForwardingTransaction::do_commit();
    }

   private:
    HookedStore& store_;
  };

  void pass() {
    if (left_-- == 0) hook_();
  }

  std::function<void()> hook_;
  int left_ = INT_MAX;
};

// Commits, and loses the replies, as a cluster may.
class LostReplyStore final : public kv::ForwardingDatabase {
 public:
  using ForwardingDatabase::ForwardingDatabase;
  std::unique_ptr<kv::Transaction> begin() override { return std::make_unique<LostReply>(inner().begin()); }

 private:
  class LostReply final : public kv::ForwardingTransaction {
   public:
    using ForwardingTransaction::ForwardingTransaction;

   protected:
    std::string do_commit() override {
      ForwardingTransaction::do_commit();
      throw kv::Error(kv::ErrorCode::commit_unknown_result);
    }
  };
};

// Rejects reads, as a store does that is unavailable or has discarded the read version.
class RejectingStore final : public kv::ForwardingDatabase {
 public:
  using ForwardingDatabase::ForwardingDatabase;
  std::unique_ptr<kv::Transaction> begin() override {
    return std::make_unique<Rejecting>(inner().begin(), *this);
  }

  std::function<void(std::string_view key)> before_read;  // may throw

 private:
  class Rejecting final : public kv::ForwardingTransaction {
   public:
    Rejecting(std::unique_ptr<kv::Transaction> inner, RejectingStore& store)
        : ForwardingTransaction(std::move(inner)), store_(store) {}

    std::optional<std::string> get(std::string_view key, kv::Isolation isolation) override {
      store_.before_read(key);
      return ForwardingTransaction::get(key, isolation);
    }
    std::vector<std::optional<std::string>> get_many(std::span<const std::string> keys,
                                                     kv::Isolation isolation) override {
      for (const auto& key : keys) store_.before_read(key);
      return ForwardingTransaction::get_many(keys, isolation);
    }
    bool scan(const kv::KeyRange& range, const kv::RangeOptions& options,
              const kv::RowVisitor& visit) override {
      store_.before_read(range.begin);
      return ForwardingTransaction::scan(range, options, visit);
    }

   private:
    RejectingStore& store_;
  };
};

// Time passes twenty times as fast: for builders whose threads wait for the next poll.
class FastClock final : public Clock {
 public:
  MonotonicTime now() const override { return start_ + kSpeed * (system_.now() - start_); }
  std::int64_t wall_ms() const override { return system_.wall_ms(); }
  bool wait_until(std::unique_lock<Mutex>& lock, ConditionVariable& changed, MonotonicTime deadline,
                  const std::function<bool()>& done) const override {
    if (deadline != MonotonicTime::max()) deadline = start_ + (deadline - start_) / kSpeed;
    return system_.wait_until(lock, changed, deadline, done);
  }

 private:
  static constexpr int kSpeed = 20;
  const SystemClock system_;
  const MonotonicTime start_ = system_.now();
};

struct Claim : testing::ViewsFixture {
  kv::testing::TiringStore tiring{*store};

  void SetUp() override {
    ViewsFixture::SetUp();
    put_design(R"({"v":{"map":"function(doc) { emit(doc.n, null); }","reduce":"_count"}})");
  }
  // The builder's threads use `tiring`.
  void TearDown() override { builder.reset(); }

  void ask(kv::Transaction& tx) {
    request_build(queue, tx, catalog.open(tx, "db"), *index(), kQueryPriority, builder.get());
  }
  // Starts a builder on a store that makes the commit that accepts a job, and fails the next ones.
  void start_on_tiring() {
    builder = std::make_unique<Builder>(tiring, catalog, queue, monitor, kinds, clock,
                                        BuilderOptions{.threads = 1});
    tiring.commits_left = 1;
    builder->start("test");
  }
  std::map<jobs::State, std::int64_t> counts() {
    return store->run([&](kv::Transaction& tx) { return queue.counts(tx, "views"); });
  }
  void wait_until_idle() {
    for (int i = 0; i < 60'000; ++i) {
      auto now = counts();
      if (now[jobs::State::pending] + now[jobs::State::running] == 0) return;
      clock.sleep(std::chrono::milliseconds(1));
    }
    FAIL() << "A build has not ended.";
  }
  // The number of commits that requesting and running a build takes.
  std::uint64_t commits_of_a_build() {
    put("{}");
    const auto before = store->stats().commits;
    store->run([&](kv::Transaction& tx) { ask(tx); });
    wait_until_idle();
    return store->stats().commits - before;
  }
  // Threads become idle a moment after their last job has ended.
  void expect_two_commits() {
    for (int i = 0; i < 1000; ++i) {
      if (commits_of_a_build() == 2) return;
    }
    FAIL() << "No build took two commits.";
  }
  void expect_all(std::size_t documents) {
    EXPECT_EQ(query("v"), fmt::format(R"({{"rows":[{{"key":null,"value":{}}}]}})", documents));
  }
};

TEST_F(Claim, RequestingAndWritingTakeTwoCommits) {
  builder->start("test");
  expect_two_commits();
}

TEST_F(Claim, AnAbandonedTransactionReleasesItsThread) {
  builder->start("test");
  expect_two_commits();
  put("{}");
  for (int i = 0; i < 20; ++i) ask(*store->begin());
  EXPECT_EQ(counts()[jobs::State::running], 0);
  expect_two_commits();
}

TEST_F(Claim, WithoutAFreeThreadTheJobStaysPending) {
  put("{}");
  store->run([&](kv::Transaction& tx) { ask(tx); });
  EXPECT_EQ(counts()[jobs::State::pending], 1);
}

TEST_F(Claim, AClaimedJobIsCompletedOrReleasedWhenTheBuilderStops) {
  std::size_t documents = 0;
  for (int i = 0; i < 30; ++i) {
    builder = std::make_unique<Builder>(*store, catalog, queue, monitor, kinds, clock, BuilderOptions{});
    builder->start(fmt::format("test-{}", i));
    put("{}");
    ++documents;
    if (i % 3 != 0) clock.sleep(std::chrono::milliseconds(1));
    std::thread asker([&] { store->run([&](kv::Transaction& tx) { ask(tx); }); });
    if (i % 2 == 0) asker.join();
    builder->stop();
    if (asker.joinable()) asker.join();
    builder.reset();
    EXPECT_EQ(counts()[jobs::State::running], 0);
  }
  builder = std::make_unique<Builder>(*store, catalog, queue, monitor, kinds, clock, BuilderOptions{});
  build();
  expect_all(documents);
}

TEST_F(Claim, StoppingABuilderWaitsForClaimsInProgress) {
  builder->start("test");
  expect_two_commits();
  put("{}");
  const auto tx = store->begin();
  ask(*tx);
  std::thread end([&] { builder.reset(); });
  clock.sleep(std::chrono::milliseconds(50));  // its idle threads end
  tx->commit();
  end.join();
  EXPECT_EQ(counts()[jobs::State::running], 0);
}

TEST_F(Claim, AJobWhoseClaimHasAnUnknownResultIsReleased) {
  const FastClock fast;
  builder = std::make_unique<Builder>(*store, catalog, queue, monitor, kinds, fast, BuilderOptions{});
  builder->start("test");
  expect_two_commits();
  LostReplyStore lost_reply(*store);
  for (int i = 0; i < 5; ++i) {
    put("{}");
    EXPECT_THROW(lost_reply.run([&](kv::Transaction& tx) { ask(tx); }), kv::Error);
    wait_until_idle();
  }
  builder.reset();  // before its clock
}

TEST_F(Claim, AJobWhoseClaimIsSettledRunsOnce) {
  using kv::testing::LossyStore;
  using enum LossyStore::Fate;
  builder->start("test");
  expect_two_commits();
  LossyStore lossy(*store);
  const std::vector<std::deque<LossyStore::Fate>> courses = {
      {lost_after_commit}, {lost_before_commit}, {late}, {lost_before_commit, lost_before_commit}};
  for (const auto& fates : courses) {
    put("{}");
    lossy.fates = fates;
    lossy.run([&](kv::Transaction& tx) { ask(tx); });
    EXPECT_EQ(lossy.deliver(), 0);
    wait_until_idle();
  }
  // Refused claims hold no threads.
  expect_two_commits();
}

TEST_F(Claim, ABuildIsReleasedIfTheStoreDoesNotRespond) {
  put("{}");
  store->run([&](kv::Transaction& tx) { ask(tx); });
  start_on_tiring();
  for (int i = 0; i < 60'000 && tiring.commits_left > -2; ++i) clock.sleep(std::chrono::milliseconds(1));
  EXPECT_EQ(counts()[jobs::State::running], 1);
  tiring.commits_left = INT_MAX;
  wait_until_idle();
  expect_all(1);
}

TEST_F(Claim, AShortStoreOutageFailsNoBuild) {
  put("{}");
  store->run([&](kv::Transaction& tx) { ask(tx); });
  tiring.failures_left = 1;
  start_on_tiring();
  wait_until_idle();
  EXPECT_LT(tiring.failures_left, 1);
  EXPECT_EQ(counts()[jobs::State::failed], 0);
  expect_all(1);
}

TEST_F(Claim, ATransientReadErrorFailsNoBuild) {
  const PassingClock passing;
  RejectingStore rejecting(*store);
  Builder on_rejecting(rejecting, catalog, queue, monitor, kinds, passing,
                       BuilderOptions{.batch_documents = 7});
  int left = 0, interrupted = 0;
  rejecting.before_read = [&](std::string_view) {
    if (left-- == 0) throw kv::Error(kv::ErrorCode::transaction_too_old);
  };
  std::size_t documents = 0;
  for (int point = 0; left < 0 || point == 0; ++point) {
    ASSERT_LT(point, 1000);
    left = INT_MAX;
    put("{}");
    request();
    const auto jobs = accept();
    left = point;
    for (const auto& job : jobs) on_rejecting.run(job);
    interrupted += static_cast<int>(counts()[jobs::State::pending]);
    for (const auto& job : accept()) on_rejecting.run(job);
    expect_all(++documents);
    ASSERT_EQ(counts()[jobs::State::failed], 0) << point;
  }
  EXPECT_GT(interrupted, 0);
}

struct InterruptedByTheStore : Claim {
  PassingClock passing;
  RejectingStore rejecting{*store};
  Builder on_rejecting{
      rejecting, catalog, queue, monitor, kinds, passing, BuilderOptions{.batch_documents = 1}};
  int batches = 0;  // that a run can write before the store fails

  void SetUp() override {
    Claim::SetUp();
    build();
    // Each batch reads what its documents have in the index.
    const auto database = store->run([&](kv::Transaction& tx) { return catalog.open(tx, "db"); });
    rejecting.before_read =
        [&, lists = IndexKeys(database, index()->signature()).part(kDocumentsPart)](std::string_view key) {
          if (key.starts_with(lists) && batches-- <= 0) throw kv::Error(kv::ErrorCode::transaction_timed_out);
        };
  }
  // Each run is followed by a pause of one second.
  void run(int times, int batches_each) {
    for (; times > 0; --times) {
      const auto jobs = accept();
      ASSERT_EQ(jobs.size(), 1u);
      batches = batches_each;
      on_rejecting.run(jobs.front());
    }
  }
  void put_some(int documents) {
    for (; documents > 0; --documents) put("{}");
    request();
  }
};

TEST_F(InterruptedByTheStore, ABuildWithoutProgressFailsEventually) {
  put_some(1);
  run(120, 0);
  EXPECT_EQ(counts()[jobs::State::pending], 1);
  run(1, 0);
  EXPECT_EQ(counts()[jobs::State::failed], 1);
  // After another request, earlier interruptions do not count.
  request();
  run(120, 0);
  EXPECT_EQ(counts()[jobs::State::pending], 1);
  run(1, INT_MAX);
  expect_all(1);
}

TEST_F(InterruptedByTheStore, RareInterruptionsDoNotFailABuild) {
  put_some(1);
  for (int i = 0; i < 19; ++i) {
    run(1, 0);
    passing.advance(std::chrono::minutes(9));
  }
  EXPECT_EQ(counts()[jobs::State::pending], 1);
  // Earlier interruptions no longer count.
  passing.advance(std::chrono::minutes(1));
  run(1, 0);
  EXPECT_EQ(counts()[jobs::State::pending], 1);
}

TEST_F(InterruptedByTheStore, ABuildThatMakesProgressDoesNotFail) {
  put_some(150);
  run(149, 1);
  EXPECT_EQ(counts()[jobs::State::pending], 1);
  run(1, 1);
  EXPECT_EQ(counts()[jobs::State::finished], 1);
  expect_all(150);
}

TEST_F(Claim, ABuildThatCannotReportItsFailureIsReleasedAndReportsItLater) {
  store->run([&](kv::Transaction& tx) { queue.add(tx, "views", "damaged", R"("no request")"); });
  tiring.failures_left = 1;
  start_on_tiring();
  wait_until_idle();
  EXPECT_LT(tiring.failures_left, 1);
  EXPECT_EQ(counts()[jobs::State::failed], 1);
}

TEST_F(Claim, AFinishedBuildReportsNoPendingChanges) {
  for (int i = 0; i < 150; ++i) put("{}");
  request();
  for (const auto& job : accept()) builder->run(job);
  const auto jobs =
      store->run([&](kv::Transaction& tx) { return list_jobs(queue, tx, "views", {.limit = 10}).jobs; });
  EXPECT_THAT(jobs.at(0).progress,
              ::testing::HasSubstr(R"("changes_done":151,"total_changes":151,"progress":100)"));
}

// A request for an index whose job is running does not request another run: the run must not end without
// having read what was written before the request.
TEST_F(Claim, AChangeAtAnyPointOfABuildIsInTheIndexAtItsEnd) {
  HookedStore hooked(*store);
  std::size_t documents = 0;
  bool reached = true;
  for (int point = 0; reached; ++point) {
    ASSERT_LT(point, 1000);
    Builder on_hooked(hooked, catalog, queue, monitor, kinds, clock, BuilderOptions{.batch_documents = 7});
    for (int i = 0; i < 3; ++i) put("{}");
    documents += 3;
    request();
    const auto jobs = accept();
    hooked.before(point, [&] {
      put("{}");
      ++documents;
      request();
    });
    for (const auto& job : jobs) on_hooked.run(job);
    reached = hooked.reached();
    hooked.before(INT_MAX, {});
    for (const auto& job : accept()) on_hooked.run(job);
    EXPECT_TRUE(accept().empty());
    expect_all(documents);
  }
}

}  // namespace
}  // namespace divan::index::views
