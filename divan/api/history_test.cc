#include "divan/api/history.h"

#include <gmock/gmock.h>

#include "divan/base/json.h"

namespace divan::api {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

// One whose wall clock can be set.
struct SettableClock final : Clock {
  ManualClock manual;
  std::int64_t wall = 1'700'000'000'000;

  MonotonicTime now() const override { return manual.now(); }
  std::int64_t wall_ms() const override { return wall; }
  bool wait_until(std::unique_lock<Mutex>& lock, ConditionVariable& changed, MonotonicTime deadline,
                  const std::function<bool()>& done) const override {
    return manual.wait_until(lock, changed, deadline, done);
  }
};

struct HistoryTest : ::testing::Test {
  SettableClock clock;
  double requests = 100;
  double memory = 7;
  std::map<std::string, jobs::AttemptCounts> jobs;
  History history{clock, [this] { return jobs; }};

  HistoryTest() {
    history.add("requests", History::Kind::counter, [this] { return requests; });
    history.add("memory", History::Kind::gauge, [this] { return memory; });
  }
  void sample_after(Duration time) {
    clock.manual.advance(time);
    clock.wall += std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
    history.sample();
  }
};

TEST_F(HistoryTest, KeepsRatesOfCountersAndValuesOfGauges) {
  EXPECT_THAT(history.json(10, ""), HasSubstr(R"("times":[],"series":{"requests":[],"memory":[]})"));
  requests = 110;
  sample_after(seconds(5));
  requests = 115;
  memory = 9;
  sample_after(seconds(10));
  EXPECT_THAT(history.json(10, ""), HasSubstr(R"("series":{"requests":[2,0.5],"memory":[7,9]})"));
  EXPECT_THAT(history.json(1, ""), HasSubstr(R"("series":{"requests":[0.5],"memory":[9]})"));
  EXPECT_THAT(history.json(0, ""), HasSubstr(R"("series":{"requests":[],"memory":[]})"));
}

TEST_F(HistoryTest, CountsAttemptsOfOneTypeOrAll) {
  jobs["mail"] = {.started = 2, .waited_ms = 30, .ended = 1, .ran_ms = 5, .failed = 1};
  sample_after(seconds(5));
  jobs["mail"].started = 5;
  jobs["audit"] = {.started = 1};
  sample_after(seconds(5));
  EXPECT_THAT(
      history.json(10, "mail"),
      HasSubstr(
          R"("jobs":{"started":[2,3],"waited_ms":[30,0],"ended":[1,0],"ran_ms":[5,0],"failed":[1,0]})"));
  EXPECT_THAT(history.json(10, ""), HasSubstr(R"("jobs":{"started":[2,4])"));
  EXPECT_THAT(history.json(10, ""), HasSubstr(R"("jobs_of":null)"));
  EXPECT_THAT(history.json(10, "other"), HasSubstr(R"("jobs_of":"other","jobs":{"started":[0,0])"));
  // Types that are not counted on their own.
  jobs["_other"].started = 7;
  sample_after(seconds(5));
  EXPECT_THAT(history.json(1, "other"), HasSubstr(R"("jobs_of":"_other","jobs":{"started":[7])"));
  EXPECT_THAT(history.json(1, "mail"), HasSubstr(R"("jobs_of":"mail","jobs":{"started":[0])"));
  EXPECT_THAT(history.json(3, ""), HasSubstr(R"("jobs":{"started":[2,4,7])"));
}

// If the wall clock is set back, the times still rise, and the last is the present.
TEST_F(HistoryTest, TimesAreThoseOfThePresentClock) {
  sample_after(seconds(5));
  clock.wall = 1'000'000;
  sample_after(seconds(5));
  EXPECT_THAT(history.json(10, ""), HasSubstr(R"("times":[1000.000,1005.000])"));
}

TEST_F(HistoryTest, ForgetsTheOldest) {
  for (std::size_t i = 0; i < History::kSamples + 3; ++i) {
    memory = static_cast<double>(i);
    sample_after(History::kInterval);
  }
  const std::string json = history.json(10'000, "");
  EXPECT_THAT(json, HasSubstr(R"("memory":[3,4,)"));
  EXPECT_THAT(json, HasSubstr(",722]"));
}

}  // namespace
}  // namespace divan::api
