#include "divan/js/log_rate_limiter.h"

#include "divan/base/precompiled_test.h"

namespace divan::js {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class JsLogRateLimiter : public testing::Test {
 protected:
  // Returns how many of `tries` lines are allowed now.
  int taken(const std::string& writer, int tries) {
    int count = 0;
    for (int i = 0; i < tries; ++i) count += limiter_.take(writer, now_) ? 1 : 0;
    return count;
  }

  MonotonicTime now_{std::chrono::hours(5)};
  LogRateLimiter limiter_{10};
};

TEST_F(JsLogRateLimiter, ABurstAndThenARatePerSecond) {
  EXPECT_EQ(taken("a", 1000), 100);
  now_ += seconds(1);
  EXPECT_EQ(taken("a", 1000), 10);
  now_ += milliseconds(50);
  EXPECT_EQ(taken("a", 1000), 0);
  now_ += milliseconds(50);
  EXPECT_EQ(taken("a", 1000), 1);
  now_ += std::chrono::hours(1);
  EXPECT_EQ(taken("a", 1000), 100);
}

TEST_F(JsLogRateLimiter, WritersAreLimitedIndependently) {
  taken("a", 1000);
  EXPECT_EQ(taken("b", 5), 5);
}

TEST_F(JsLogRateLimiter, TheNextLineReportsDroppedLines) {
  taken("a", 103);
  limiter_.add_dropped("a", 4, now_);
  now_ += milliseconds(200);
  EXPECT_EQ(limiter_.take("a", now_), std::optional<std::uint64_t>(7));
  EXPECT_EQ(limiter_.take("a", now_), std::optional<std::uint64_t>(0));
}

TEST_F(JsLogRateLimiter, TheWriterThatWasIdleForLongestIsEvicted) {
  taken("first", 100);
  now_ += milliseconds(1);
  for (std::size_t i = 0; i < LogRateLimiter::kMaxWriters - 1; ++i) taken(std::to_string(i), 100);
  EXPECT_EQ(taken("0", 1), 0);
  now_ += milliseconds(1);
  EXPECT_EQ(taken("one more", 100), 100);
  EXPECT_EQ(taken("0", 1), 0);
  EXPECT_EQ(taken("first", 1000), 100);
}

TEST_F(JsLogRateLimiter, TheRateMayChange) {
  taken("a", 100);
  limiter_.set_rate(0);
  now_ += seconds(100);
  EXPECT_EQ(taken("a", 10), 0);
  limiter_.set_rate(2);
  now_ += seconds(1);
  EXPECT_EQ(taken("a", 10), 2);
}

}  // namespace
}  // namespace divan::js
