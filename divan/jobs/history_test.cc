#include "divan/jobs/history.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/jobs/attempts.h"
#include "divan/jobs/rows.h"
#include "divan/jobs/testing.h"

namespace divan::jobs {
namespace {

using testing::ElementsAre;

struct History : QueueTest {
  void SetUp() override {
    in_tx([&](kv::Transaction& tx) {
      queue.set_type(tx, "t", {.max_attempts = 2, .backoff_min = Duration(), .backoff_max = Duration()});
    });
  }
  void add(std::string_view id = "a") {
    in_tx([&](kv::Transaction& tx) { queue.add(tx, "t", id, "{}"); });
  }
  Attempt accept_one(const AcceptOptions& options = {}) {
    const std::vector<std::string> types{"t"};
    return in_tx([&](kv::Transaction& tx) { return accept(queue, tx, types, options).jobs.at(0).attempt(); });
  }
  // Runs an attempt that ends after a second.
  void run(const std::function<void(kv::Transaction&, const Attempt&)>& end,
           const AcceptOptions& options = {}) {
    const auto attempt = accept_one(options);
    clock.advance(std::chrono::seconds(1));
    in_tx([&](kv::Transaction& tx) { end(tx, attempt); });
  }
  void run_and_finish() {
    run([&](kv::Transaction& tx, const Attempt& attempt) { finish(queue, tx, attempt); });
  }
  void run_and_fail() {
    run([&](kv::Transaction& tx, const Attempt& attempt) { fail(queue, tx, attempt, "broken"); });
  }
  void run_and_release() {
    run([&](kv::Transaction& tx, const Attempt& attempt) { release(queue, tx, attempt); });
  }
  std::vector<PastAttempt> attempts() {
    return in_tx([&](kv::Transaction& tx) { return attempts_of(tx, queue.find(tx, "t", "a").value()); });
  }
  // "1 failed (broken)".
  std::vector<std::string> shown() {
    std::vector<std::string> shown;
    for (const auto& attempt : attempts()) {
      shown.push_back(fmt::format("{} {}{}", attempt.attempt,
                                  attempt.outcome ? outcome_name(*attempt.outcome) : "running",
                                  attempt.error.empty() ? "" : " (" + attempt.error + ")"));
    }
    return shown;
  }
  std::size_t rows() {
    return in_tx([&](kv::Transaction& tx) { return tx.get_range(JobKey("hist").range()).rows.size(); });
  }
};

TEST_F(History, AJobThatSucceedsAtOnceHasNoRows) {
  add();
  EXPECT_THAT(shown(), ElementsAre());
  accept_one();
  EXPECT_THAT(shown(), ElementsAre("1 running"));
  EXPECT_EQ(attempts().front().ended_at, std::nullopt);
  in_tx([&](kv::Transaction& tx) { finish(queue, tx, {"t", "a", queue.find(tx, "t", "a")->lock}); });
  EXPECT_THAT(shown(), ElementsAre("1 finished"));
  EXPECT_EQ(rows(), 0u);
}

TEST_F(History, EachAttemptUntilTheEnd) {
  add();
  const auto worker = in_tx([&](kv::Transaction& tx) { return registry.add(tx, "role", "w1", "{}"); });
  run([&](kv::Transaction& tx, const Attempt&) { registry.remove(tx, worker); }, {.worker = worker});
  EXPECT_THAT(shown(), ElementsAre("1 lost"));
  EXPECT_EQ(attempts().front().worker_id, "w1");
  EXPECT_EQ(attempts().front().started_at, 1'000'000);
  EXPECT_EQ(attempts().front().ended_at, 1'001'000);
  run_and_release();
  run_and_fail();
  EXPECT_THAT(shown(), ElementsAre("1 lost", "2 released", "2 failed (broken)"));
  run_and_fail();
  EXPECT_THAT(shown(), ElementsAre("1 lost", "2 released", "2 failed (broken)", "3 failed (broken)"));
  EXPECT_EQ(rows(), 3u);
  // Resubmitted after its end: attempts are counted from 1 again, and epochs keep growing.
  add();
  EXPECT_THAT(shown(), ElementsAre("1 lost", "2 released", "2 failed (broken)", "3 failed (broken)"));
  run_and_finish();
  EXPECT_EQ(shown().back(), "1 finished");
  const auto known = attempts();
  EXPECT_TRUE(std::is_sorted(known.begin(), known.end(),
                             [](const auto& a, const auto& b) { return a.epoch < b.epoch; }));
}

TEST_F(History, OfAJobThatIsCancelledBetweenAttempts) {
  add();
  run_and_fail();
  in_tx([&](kv::Transaction& tx) { queue.cancel(tx, "t", "a"); });
  EXPECT_THAT(shown(), ElementsAre("1 failed (broken)"));
  add();
  EXPECT_THAT(shown(), ElementsAre("1 failed (broken)"));
}

TEST_F(History, OfAJobThatIsCancelledWhenItsOnlyAttemptWasReleased) {
  add();
  run_and_release();
  in_tx([&](kv::Transaction& tx) { queue.cancel(tx, "t", "a"); });
  EXPECT_THAT(shown(), ElementsAre("1 released"));
  add();
  EXPECT_THAT(shown(), ElementsAre("1 released"));
}

TEST_F(History, OfAPeriodicJob) {
  const auto schedule = Schedule::parse("* * * * *", "UTC");
  in_tx([&](kv::Transaction& tx) { queue.add(tx, "t", "a", "{}", {.schedule = schedule}); });
  for (int i = 0; i < 3; ++i) {
    clock.advance(std::chrono::minutes(1));
    i == 1 ? run_and_fail() : run_and_finish();
    if (i == 1) run_and_fail();
  }
  EXPECT_THAT(shown(), ElementsAre("1 finished", "1 failed (broken)", "2 failed (broken)", "1 finished"));
}

TEST_F(History, OnlyTheLastAreKeptAndRemovedWithTheJob) {
  add();
  std::vector<std::int64_t> epochs;
  for (int i = 0; i < 25; ++i) {
    run_and_release();
    epochs.push_back(attempts().back().epoch);
  }
  const auto kept = attempts();
  EXPECT_EQ(kept.size(), 20u);
  EXPECT_EQ(kept.front().epoch, epochs.at(5));
  EXPECT_EQ(kept.back().epoch, epochs.at(24));
  in_tx([&](kv::Transaction& tx) { queue.remove(tx, "t", "a"); });
  EXPECT_EQ(rows(), 0u);
  add();
  run_and_release();
  in_tx([&](kv::Transaction& tx) { queue.remove_type(tx, "t", true); });
  EXPECT_EQ(rows(), 0u);
}

TEST_F(History, AsJson) {
  add();
  run_and_fail();
  const auto known = attempts();
  EXPECT_EQ(
      history_json(known),
      fmt::format(R"([{{"attempt":1,"epoch":{},"started_at":1000000,"ended_at":1001000,"outcome":"failed",)"
                  R"("error":"broken"}}])",
                  known.front().epoch));
  EXPECT_EQ(history_json({}), "[]");
}

}  // namespace
}  // namespace divan::jobs
