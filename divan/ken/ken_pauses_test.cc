// When ken scans an index again that failed, may not be built yet, or was built recently.
#include "divan/ken/testing.h"

namespace divan::ken {
namespace {

// Case 8: 60 s.
TEST_F(KenTest, WhatMayNotBeBuiltComesAgainInAMinute) {
  const auto running = take_batch_channel();
  config.override_with("ken", "max_incremental_updates", "1");
  put_design(1);
  const auto start = clock.now();
  scan();
  EXPECT_EQ(wait_reason_of("_design/1"), WaitReason::batch_channels);
  // Without a notification of ken.
  config.override_with("ken", "batch_channels", "2");
  until(start, milliseconds(59'999));
  EXPECT_TRUE(pending().empty());
  until(start, milliseconds(60'000));
  EXPECT_EQ(pending(), (std::vector<std::string>{"_design/1"}));
}

// Case 8: 5 s, and never after a success.
TEST_F(KenTest, AFailedBuildIsTriedAgainInFiveSecondsAndASuccessfulOneNever) {
  put_design(1);
  scan();
  fail(accept().at(0));
  auto start = clock.now();
  settle();
  // Ken notices the failure without a change of the database.
  EXPECT_EQ(wait_reason_of("_design/1"), WaitReason::failed);
  EXPECT_EQ(ken->status().waiting.at(0).failures->error, "no");
  put_documents(1);
  scan();
  EXPECT_EQ(wait_reason_of("_design/1"), WaitReason::failed);
  EXPECT_EQ(ken->status().waiting.at(0).failures->error, "no");
  until(start, milliseconds(4'999));
  EXPECT_TRUE(pending().empty());
  until(start, milliseconds(5'000));
  EXPECT_EQ(pending().size(), 1u);
  // The pause doubles.
  fail(accept().at(0));
  start = clock.now();
  settle();
  until(start, milliseconds(9'999));
  EXPECT_TRUE(pending().empty());
  until(start, milliseconds(10'000));
  build(accept().at(0));
  std::size_t reads = 0;
  kind->on_read = [&](const std::string&) { ++reads; };
  start = clock.now();
  for (int i = 1; i <= 30; ++i) until(start, seconds(10 * i));
  EXPECT_EQ(reads, 0u);
  EXPECT_TRUE(pending().empty());
}

// As real clocks do, it advances between any two readings.
class AdvancingClock final : public Clock {
 public:
  explicit AdvancingClock(const ManualClock& base) : base_(base) {}
  MonotonicTime now() const override { return base_.now() + std::chrono::nanoseconds(++readings_); }
  std::int64_t wall_ms() const override { return base_.wall_ms(); }
  bool wait_until(std::unique_lock<Mutex>& lock, ConditionVariable& changed, MonotonicTime deadline,
                  const std::function<bool()>& done) const override {
    return base_.wait_until(lock, changed, deadline, done);
  }

 private:
  const ManualClock& base_;
  mutable std::int64_t readings_ = 0;
};

TEST_F(KenTest, AFailedBuildIsTriedAgainByAClockThatAdvancesMeanwhile) {
  const AdvancingClock advancing(clock);
  ken = std::make_unique<Ken>(*store, catalog, queue, kinds, advancing, rng, config);
  put_design(1);
  scan();
  fail(accept().at(0));
  const auto start = clock.now();
  settle();
  until(start, milliseconds(5'100));
  EXPECT_EQ(pending().size(), 1u);
  ken.reset();
}

// Only its own pause counts, not the delay after a build.
TEST_F(KenTest, AFailedBuildIsRetriedBeforeTheDelayIsOver) {
  ken->set_delay(3'600'000);
  put_design(1);
  scan();
  fail(accept().at(0));
  const auto start = clock.now();
  settle();
  until(start, milliseconds(5'000));
  EXPECT_EQ(pending().size(), 1u);
}

TEST_F(KenTest, OfTwoFailedBuildsOfADatabaseTheOneWithTheShorterPauseComesFirst) {
  put_design(1);
  scan();
  for (int i = 0; i < 4; ++i) {
    fail(accept().at(0));
    settle();
    if (i < 3) until(clock.now(), seconds(60));
  }
  put_design(2);
  scan();
  fail(accept().at(0));
  const auto start = clock.now();
  settle();
  until(start, milliseconds(5'000));
  EXPECT_EQ(pending(), (std::vector<std::string>{"_design/2"}));
}

TEST_F(KenTest, AFailureThatAnotherClockPutsIntoTheFutureMakesNoLongerPause) {
  put_design(1);
  scan();
  const auto job = accept().at(0);
  fail(job);
  store->run([&](kv::Transaction& tx) {
    const index::IndexKeys keys(catalog.open(tx, "db"), index::BuildRequest::parse(job.data).signature);
    index::write_failures(tx, keys, {1, clock.wall_ms() + 3'600'000, false, "no"});
  });
  const auto start = clock.now();
  settle();
  until(start, milliseconds(4'999));
  EXPECT_TRUE(pending().empty());
  until(start, milliseconds(5'000));
  EXPECT_EQ(pending().size(), 1u);
}

TEST_F(KenTest, FailuresAreCountedFromTheLastProgress) {
  put_design(1);
  scan();
  for (int i = 0; i < 3; ++i) {
    const auto job = accept().at(0);
    const bool advanced = i == 2;
    store->run([&](kv::Transaction& tx) {
      const index::IndexKeys keys(catalog.open(tx, "db"), index::BuildRequest::parse(job.data).signature);
      index::fail_build(queue, tx, keys, job.attempt(), "no", false, advanced);
    });
    settle();
    EXPECT_EQ(ken->status().waiting.at(0).failures->count, advanced ? 1 : i + 1);
    until(clock.now(), seconds(60));
  }
}

// Failures are counted in the store: neither a restart nor the pruning of the job resets the count.
TEST_F(KenTest, ThePauseAfterFailuresGrowsOverRestarts) {
  put_design(1);
  scan();
  fail(accept().at(0));
  restart();
  auto start = clock.now();
  scan();
  EXPECT_EQ(wait_reason_of("_design/1"), WaitReason::failed);
  until(start, milliseconds(4'900));
  EXPECT_TRUE(pending().empty());
  until(start, milliseconds(5'100));
  const auto job = accept().at(0);
  fail(job);
  store->run([&](kv::Transaction& tx) { queue.remove(tx, "views", job.job.id); });
  restart();
  start = clock.now();
  scan();
  EXPECT_EQ(ken->status().waiting.at(0).failures->count, 2);
  until(start, milliseconds(9'900));
  EXPECT_TRUE(pending().empty());
  until(start, milliseconds(10'100));
  EXPECT_EQ(pending().size(), 1u);
}

// The longest pause, in seconds, of an index whose builds fail again and again.
TEST_F(KenTest, BuildsThatFailForTheirFunctionsArePutOffForUpToAnHourAndOthersForAMinute) {
  for (const bool by_function : {true, false}) {
    const std::string name = by_function ? "by_function" : "otherwise";
    create(name);
    put_design(1, name);
    scan(name);
    std::int64_t last = 0;
    for (int i = 0; i < 14; ++i) {
      fail(accept().at(0), by_function);
      settle();
      const auto waiting = ken->status().waiting.at(0);
      EXPECT_EQ(waiting.failures->count, i + 1);
      EXPECT_EQ(waiting.why, WaitReason::failed);
      last = waiting.failures->retry_at() - waiting.failures->last_at;
      const auto start = clock.now();
      until(start, milliseconds(last - 1'000));
      EXPECT_TRUE(pending().empty());
      until(start, milliseconds(last + 1'000));
      ASSERT_EQ(pending().size(), 1u);
    }
    EXPECT_EQ(last, by_function ? 3'600'000 : 60'000);
    build_all();
    settle();
    EXPECT_TRUE(ken->status().waiting.empty());
  }
}

TEST_F(KenTest, AFailedJobThatWasRequestedElsewhereIsRetriedInAMinute) {
  put_design(1);
  Ken other(*store, catalog, queue, kinds, clock, rng, config);
  other.add("db");
  while (other.step()) {}
  const auto job = accept().at(0);
  const auto start = clock.now();
  scan();
  EXPECT_TRUE(ken->status().active.empty());
  fail(job);
  until(start, milliseconds(59'900));
  EXPECT_TRUE(pending().empty());
  until(start, milliseconds(60'100));
  until(start, milliseconds(60'300));
  EXPECT_EQ(pending().size(), 1u);
}

// Case 8: never.
TEST_F(KenTest, ADatabaseThatIsGoneIsNotTriedAgain) {
  put_design(1);
  scan();
  fail(accept().at(0));
  settle();
  store->run([&](kv::Transaction& tx) { catalog.remove(tx, "db"); });
  const auto start = clock.now();
  until(start, seconds(6));
  const auto status = ken->status();
  EXPECT_TRUE(status.retries.empty());
  EXPECT_TRUE(status.waiting.empty());
  EXPECT_TRUE(all_jobs().empty());
}

// Case 10.
TEST_F(KenTest, ADesignDocumentThatCannotBeReadDelaysNoOtherAndIsTriedAgain) {
  for (int i = 1; i <= 5; ++i) put_design(i);
  std::string key;
  std::string body;
  store->run([&](kv::Transaction& tx) {
    const auto db = catalog.open(tx, "db");
    key = db.keys().body(docs::read_tree(tx, db, "_design/1").front().sequence, 0);
    body = tx.get(key).value();
    tx.clear(key);
  });
  const auto start = clock.now();
  scan();
  EXPECT_EQ(pending().size(), 4u);
  ASSERT_EQ(ken->status().retries.size(), 1u);
  EXPECT_FALSE(ken->status().retries.at(0).error.empty());
  store->run([&](kv::Transaction& tx) { tx.set(key, body); });
  // A change does not hasten it.
  scan();
  until(start, milliseconds(4'900));
  EXPECT_EQ(pending().size(), 4u);
  until(start, milliseconds(5'100));
  EXPECT_EQ(pending().size(), 5u);
}

TEST_F(KenTest, AnIndexThatWasBuiltIsDelayedUnlessABatchChannelIsFree) {
  put_design(1);
  scan();
  build_all();
  // There is one: at once.
  put_documents(1);
  scan();
  EXPECT_EQ(pending().size(), 1u);
  build_all();
  settle();
  const auto running = take_batch_channel();
  put_documents(1);
  scan();
  build_all();
  scan();
  const auto start = clock.now();
  put_documents(1);
  scan();
  EXPECT_EQ(wait_reason_of("_design/1"), WaitReason::delay);
  until(start, milliseconds(4'000));
  EXPECT_TRUE(pending().empty());
  until(start, milliseconds(5'100));
  EXPECT_EQ(pending().size(), 1u);
}

TEST_F(KenTest, AnIndexWhoseDelayIsOverIsForgotten) {
  ken->set_batch_size(10);
  ken->set_delay(30'000);
  put_design(1);
  scan();
  build_all();
  settle();
  put_documents(1);
  scan();
  EXPECT_EQ(wait_reason_of("_design/1"), WaitReason::delay);
  // Only ken's memory of the recent build delays it.
  restart();
  scan();
  EXPECT_EQ(pending().size(), 1u);
  build_all();
  const auto start = clock.now();
  settle();
  ken->set_delay(1);
  ken->set_prune_interval(1001);
  until(start, milliseconds(2'100));
  ken->set_delay(30'000);
  put_documents(1);
  scan();
  EXPECT_EQ(pending().size(), 1u);
}

}  // namespace
}  // namespace divan::ken
