#include "divan/deliver/pacer.h"

#include <gtest/gtest.h>

#include <vector>

namespace divan::deliver {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using State = Pacer::State;

struct PacerTest : testing::Test {
  MonotonicTime now{seconds(1000)};
  Pacer pacer;

  void SetUp() override { limit({.concurrency = 10}); }
  void limit(const Pacer::Limits& limits) { pacer.set_limits(limits, now); }
  std::vector<std::uint64_t> begin(int requests) {
    std::vector<std::uint64_t> begun;
    for (int i = 0; i < requests; ++i) begun.push_back(pacer.begin());
    return begun;
  }
  void request(bool fails) { pacer.end(pacer.begin(), fails, now); }
  void fail(int times) {
    for (int i = 0; i < times; ++i) request(true);
  }
  // Lets the pause pass.
  void wait() { now = pacer.retry_at(); }
};

TEST_F(PacerTest, ConcurrencyCountsRequestsUnderWay) {
  EXPECT_EQ(pacer.allowed(now), 10u);
  const auto begun = begin(7);
  EXPECT_EQ(pacer.allowed(now), 3u);
  pacer.end(begun[0], false, now);
  EXPECT_EQ(pacer.allowed(now), 4u);
  limit({.concurrency = 2});
  EXPECT_EQ(pacer.allowed(now), 0u);
  EXPECT_FALSE(pacer.next_time(now));
}

TEST_F(PacerTest, ARateAllowsOneRequestAndThenOnesAsTimePasses) {
  limit({.concurrency = 10, .per_second = 2});
  EXPECT_EQ(pacer.allowed(now), 1u);
  begin(1);
  EXPECT_EQ(pacer.allowed(now), 0u);
  ASSERT_TRUE(pacer.next_time(now));
  EXPECT_EQ(*pacer.next_time(now) - now, milliseconds(500));
  now = *pacer.next_time(now);
  EXPECT_EQ(pacer.allowed(now), 1u);
  now += seconds(100);
  EXPECT_EQ(pacer.allowed(now), 2u) << "after a pause, the requests of a second";
}

TEST_F(PacerTest, ASlowRate) {
  limit({.concurrency = 10, .per_second = 0.001});
  begin(1);
  now += seconds(999);
  EXPECT_EQ(pacer.allowed(now), 0u);
  now += seconds(1);
  EXPECT_EQ(pacer.allowed(now), 1u);
}

TEST_F(PacerTest, FiveFailuresInSuccessionOpenTheCircuit) {
  fail(4);
  request(false);
  fail(4);
  EXPECT_EQ(pacer.state(now), State::closed);
  fail(1);
  EXPECT_EQ(pacer.state(now), State::open);
  EXPECT_EQ(pacer.allowed(now), 0u);
  EXPECT_EQ(pacer.next_time(now), now + seconds(1));
  wait();
  EXPECT_EQ(pacer.state(now), State::half_open);
  EXPECT_EQ(pacer.allowed(now), 1u);
}

TEST_F(PacerTest, PausesDoubleUpToAMinuteUntilASuccess) {
  fail(5);
  for (const int expected : {1, 2, 4, 8, 16, 32, 60, 60}) {
    EXPECT_EQ(pacer.retry_at() - now, seconds(expected));
    wait();
    fail(1);
  }
  wait();
  request(false);
  EXPECT_EQ(pacer.state(now), State::closed);
  EXPECT_EQ(pacer.allowed(now), 10u);
  fail(5);
  EXPECT_EQ(pacer.retry_at() - now, seconds(1));
}

TEST_F(PacerTest, RequestsThatWereUnderWayWhenItOpenedDoNotDecide) {
  const auto begun = begin(8);
  for (int i = 0; i < 6; ++i) pacer.end(begun[i], true, now);
  EXPECT_EQ(pacer.retry_at() - now, seconds(1));
  EXPECT_EQ(pacer.failures(), 6);
  wait();
  EXPECT_EQ(pacer.allowed(now), 1u) << "two still hang";
  const auto probe = pacer.begin();
  EXPECT_EQ(pacer.allowed(now), 0u);
  pacer.end(begun[6], true, now);
  EXPECT_EQ(pacer.state(now), State::half_open);
  EXPECT_EQ(pacer.allowed(now), 0u);
  pacer.end(probe, true, now);
  EXPECT_EQ(pacer.retry_at() - now, seconds(2));
  wait();
  pacer.end(begun[7], false, now);
  EXPECT_EQ(pacer.state(now), State::closed) << "it does respond";
}

TEST_F(PacerTest, AReceiverCanRequestAPauseOfUpToAMinute) {
  pacer.pause(seconds(7), now);
  EXPECT_EQ(pacer.state(now), State::paused);
  EXPECT_EQ(pacer.allowed(now), 0u);
  pacer.pause(seconds(3), now);
  EXPECT_EQ(pacer.retry_at() - now, seconds(7));
  wait();
  EXPECT_EQ(pacer.state(now), State::closed);
  EXPECT_EQ(pacer.allowed(now), 10u);
  pacer.pause(std::chrono::hours(1), now);
  EXPECT_EQ(pacer.retry_at() - now, seconds(60));
}

TEST_F(PacerTest, CloseEndsPausesAndForgetsFailures) {
  fail(5);
  pacer.close();
  EXPECT_EQ(pacer.state(now), State::closed);
  EXPECT_EQ(pacer.allowed(now), 10u);
  fail(4);
  EXPECT_EQ(pacer.state(now), State::closed);
}

}  // namespace
}  // namespace divan::deliver
