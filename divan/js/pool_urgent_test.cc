// Urgent calls: their reserved processes, and calls that take too long.
#include <sys/resource.h>

#include <algorithm>
#include <future>

#include "divan/base/precompiled_test.h"
#include "divan/js/test_support.h"

namespace divan::js {
namespace {

using testing::SizeIs;

const std::string kForEver = "doc => { while (true); }";

Program owned(std::int64_t database, const std::string& source) {
  auto program = program_of({source});
  program.functions[0].owner = {"db", database, "_design/d"};
  return program;
}

class JsPoolUrgent : public testing::Test {
 protected:
  // A call that runs until it is stopped.
  void hold(std::int64_t database) {
    Limits limits{.invocation = std::chrono::hours(1), .stop = stop_.get_token()};
    const auto busy = pool_->stats().busy;
    held_.push_back(std::async(std::launch::async, [this, database, limits] {
      const std::vector<std::string_view> documents = {"{}"};
      return error_of([&] { pool_->map(owned(database, kForEver), documents, limits); });
    }));
    ASSERT_TRUE(eventually([&] {
      return pool_->stats().busy == busy + 1 &&
             std::ranges::all_of(pool_->running(), [](const auto& call) { return call.pid > 0; });
    }));
  }

  SystemClock clock_;
  std::optional<Pool> pool_{std::in_place, with_reserved(), clock_};
  std::stop_source stop_;
  std::vector<std::future<Error>> held_;

 private:
  static PoolOptions with_reserved() {
    auto options = test_options(1);
    options.reserved = 1;
    return options;
  }
};

TEST_F(JsPoolUrgent, AnUrgentCallHasAProcessWhileBackgroundCallsHoldAllOfTheirs) {
  hold(1);
  const std::vector<std::string_view> documents = {R"({"n":7})"};
  const auto result = pool_->map(owned(2, kEmitN), documents, {.urgent = true});
  EXPECT_EQ(shown(result, 0, 0), "7=null");
  const auto calls = pool_->running();
  ASSERT_THAT(calls, SizeIs(1));
  EXPECT_EQ(calls[0].owner.number, 1);
  EXPECT_EQ(calls[0].purpose, Purpose::background);
  EXPECT_GT(calls[0].pid, 0);
  stop_.request_stop();
  EXPECT_EQ(held_[0].get().status(), 503);
}

TEST_F(JsPoolUrgent, TrialsCannotHoldTheProcessOfAwaitedCallsAndFastPrograms) {
  const std::vector<std::string_view> documents = {R"({"n":7})"};
  const auto trial = [&](std::int64_t database) {
    return shown(pool_->map(owned(database, kEmitN), documents, {.urgent = true}), 0, 0);
  };
  EXPECT_EQ(trial(5), "7=null");
  const auto process = children().at(0);
  hold(1);
  kill(process, SIGSTOP);
  auto held = std::async(std::launch::async, [&] { return trial(2); });
  ASSERT_TRUE(eventually([&] { return pool_->stats().busy == 2; }));
  auto waiting = std::async(std::launch::async, [&] { return trial(3); });
  ASSERT_TRUE(eventually([&] { return pool_->stats().waiting == 1; }));
  const auto waited_for = pool_->map(owned(4, kEmitN), documents, {.urgent = true, .waited_for = true});
  EXPECT_EQ(shown(waited_for, 0, 0), "7=null");
  EXPECT_EQ(trial(5), "7=null");
  EXPECT_EQ(pool_->stats().waiting, 1u);
  for (const auto& call : pool_->running())
    EXPECT_EQ(call.purpose, call.owner.number == 1 ? Purpose::background : Purpose::trial);
  kill(process, SIGCONT);
  EXPECT_EQ(held.get(), "7=null");
  EXPECT_EQ(waiting.get(), "7=null");
  stop_.request_stop();
  held_[0].get();
}

TEST_F(JsPoolUrgent, ASlowProgramIsReportedAndNotUrgentForAWhile) {
  const std::vector<std::string_view> documents = {"{}"};
  const Limits limits{.invocation = std::chrono::hours(1), .urgent = true, .on_slow = [] {
                        throw Error(500, "slow", "The call is not repeated.");
                      }};
  const auto call = [&] {
    return error_of([&] { pool_->map(owned(1, kForEver), documents, limits); }).name();
  };
  EXPECT_EQ(call(), "slow");
  const auto busy_time = pool_->stats().busy_time;
  EXPECT_EQ(call(), "slow");
  EXPECT_EQ(pool_->stats().busy_time, busy_time);
  EXPECT_EQ(pool_->stats().busy, 0u);
}

TEST_F(JsPoolUrgent, AProgramThatCompilesSlowlyIsCompiledInTheBackground) {
  const std::string slow =
      "(function () { for (var i = 0; i < 3e7; ++i) Date.now(); return doc => emit(1); })()";
  const std::vector<std::string_view> documents = {"{}"};
  bool was_slow = false;
  const auto result = pool_->map(
      owned(1, slow), documents,
      {.invocation = std::chrono::minutes(1), .urgent = true, .on_slow = [&] { was_slow = true; }});
  EXPECT_EQ(shown(result, 0, 0), "1=null");
  EXPECT_TRUE(was_slow);
}

TEST_F(JsPoolUrgent, StoppingACallEndsItsProcessAndNoOther) {
  hold(1);
  const auto process = children();
  ASSERT_THAT(process, SizeIs(1));
  stop_.request_stop();
  EXPECT_EQ(held_[0].get().status(), 503);
  EXPECT_THAT(children(), SizeIs(0));
  EXPECT_EQ(map_one(*pool_, kEmitN, R"({"n":1})"), "1=null");
}

TEST_F(JsPoolUrgent, ACallThatWaitsEndsWhenItIsStopped) {
  hold(1);
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] {
    const std::vector<std::string_view> documents = {"{}"};
    return error_of([&] { pool_->map(owned(2, kEmitN), documents, {.stop = stop.get_token()}); });
  });
  ASSERT_TRUE(eventually([&] { return pool_->stats().waiting == 1; }));
  stop.request_stop();
  EXPECT_EQ(waiting.get().status(), 503);
  EXPECT_EQ(pool_->stats().busy, 1u);
  stop_.request_stop();
  held_[0].get();
}

TEST_F(JsPoolUrgent, BackgroundProcessesHaveLowPriority) {
  hold(1);
  EXPECT_TRUE(eventually([] {
    const auto found = children();
    return found.size() == 1 &&
           getpriority(PRIO_PROCESS, static_cast<id_t>(found[0])) == getpriority(PRIO_PROCESS, 0) + 5;
  }));
  stop_.request_stop();
  held_[0].get();
}

}  // namespace
}  // namespace divan::js
