// The order in which waiting calls get processes.
#include <future>
#include <mutex>

#include "divan/base/precompiled_test.h"
#include "divan/js/test_support.h"

namespace divan::js {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class JsPoolWaiting : public testing::Test {
 protected:
  SystemClock clock_;
};

TEST_F(JsPoolWaiting, ACallWaitsForAProcessButNotForEver) {
  ManualClock clock;
  auto options = test_options();
  options.wait = std::chrono::seconds(30);
  Pool pool(options, clock);
  HeldCall first(pool);
  auto second = std::async(std::launch::async, [&] { return error_of([&] { map_one(pool, kEmitN); }); });
  ASSERT_TRUE(eventually([&] { return pool.stats().waiting == 1; }));
  clock.advance(std::chrono::seconds(31));
  const auto error = second.get();
  EXPECT_EQ(error.status(), 503);
  EXPECT_EQ(error.name(), "service_unavailable");
  EXPECT_EQ(pool.stats().waiting, 0u);
  EXPECT_EQ(first.resume(), "1=null");
  EXPECT_EQ(pool.stats().died, 0u);
}

TEST_F(JsPoolWaiting, CallsGetAProcessInTheirOrderOfArrival) {
  std::mutex mutex;
  std::vector<std::string> order;
  auto options = test_options();
  options.log = [&](const Function&, std::string_view line) {
    std::lock_guard lock(mutex);
    order.emplace_back(line);
  };
  Pool pool(options, clock_);
  HeldCall first(pool, "doc => log('first')");
  std::vector<std::future<void>> later;
  for (const std::string name : {"second", "third", "fourth"}) {
    later.push_back(
        std::async(std::launch::async, [&pool, name] { map_one(pool, "doc => log('" + name + "')"); }));
    ASSERT_TRUE(eventually([&] { return pool.stats().waiting == later.size(); }));
  }
  first.resume();
  for (auto& call : later) call.get();
  EXPECT_THAT(order, ElementsAre("first", "second", "third", "fourth"));
}

TEST_F(JsPoolWaiting, ADatabaseThatHasManyProcessesWaitsForOneThatHasFew) {
  // Database 1 has two processes and waits for more; the next free one is given to database 2, although its
  // call arrived later.
  std::mutex mutex;
  std::vector<std::int64_t> done;
  auto options = test_options(2);
  options.log = [&](const Function& function, std::string_view) {
    std::lock_guard lock(mutex);
    done.push_back(function.owner.number);
  };
  Pool pool(options, clock_);
  const auto run = [&](std::int64_t database, const std::string& source) {
    auto program = program_of({source});
    program.functions[0].owner.number = database;
    const std::vector<std::string_view> documents = {"{}"};
    pool.map(program, documents);
  };
  std::vector<std::future<void>> calls;
  const auto later = [&](std::int64_t database) {
    calls.push_back(std::async(std::launch::async, [&, database] { run(database, "doc => log('done')"); }));
  };
  // The first process is held until the second one has started.
  HeldCall first(pool);
  run(9, kEmitN);
  first.resume();
  const auto held = children();
  ASSERT_THAT(held, SizeIs(2));
  for (const auto child : held) kill(child, SIGSTOP);
  later(1);
  later(1);
  ASSERT_TRUE(eventually([&] { return pool.stats().busy == 2; }));
  later(1);
  ASSERT_TRUE(eventually([&] { return pool.stats().waiting == 1; }));
  later(2);
  ASSERT_TRUE(eventually([&] { return pool.stats().waiting == 2; }));
  kill(held[0], SIGCONT);
  ASSERT_TRUE(eventually([&] { return pool.stats().waiting == 0; }));
  const auto done_now = [&] {
    std::lock_guard lock(mutex);
    return done;
  };
  ASSERT_TRUE(eventually([&] { return done_now().size() == 3; }));
  EXPECT_THAT(done_now(), ElementsAre(1, 2, 1));
  kill(held[1], SIGCONT);
  for (auto& call : calls) call.get();
}

// No process is started for a database that is deleted meanwhile.
TEST_F(JsPoolWaiting, ACallThatIsStoppedDoesNotWaitForItsProcessToStart) {
  auto options = test_options();
  options.binary = "/bin/sleep";  // which never sends a hello
  Pool pool(options, clock_);
  std::stop_source stop;
  auto call = std::async(std::launch::async, [&] {
    return error_of([&] { map_one(pool, kEmitN, "{}", {.stop = stop.get_token()}); });
  });
  ASSERT_TRUE(eventually([&] { return children().size() == 1; }));
  stop.request_stop();
  const Error error = call.get();
  EXPECT_EQ(error.name(), "service_unavailable");
  EXPECT_THAT(children(), IsEmpty());
  EXPECT_EQ(pool.stats().alive, 0u);
}

// A pool of one process, which gets SIGSTOP during a call, so that others wait for it.
class JsPoolBusy : public JsPoolWaiting {
 protected:
  static Program owned(std::int64_t database, const std::string& source) {
    auto program = program_of({source});
    program.functions[0].owner = {"db", database, "_design/d"};
    return program;
  }
  void map(std::int64_t database) {
    const std::vector<std::string_view> documents = {"{}"};
    pool_.map(owned(database, "doc => log('done')"), documents);
  }
  // Starts the call, and returns when it waits.
  void map_later(std::int64_t database) {
    const auto waiting = pool_.stats().waiting;
    calls_.push_back(std::async(std::launch::async, [this, database] { map(database); }));
    ASSERT_TRUE(eventually([&] { return pool_.stats().waiting == waiting + 1; }));
  }
  void hold(std::int64_t database) {
    map(database);
    done_.clear();
    held_ = children().at(0);
    kill(held_, SIGSTOP);
    calls_.push_back(std::async(std::launch::async, [this, database] { map(database); }));
    ASSERT_TRUE(eventually([&] { return pool_.stats().busy == 1; }));
  }
  std::vector<std::int64_t> done() {
    std::lock_guard lock(mutex_);
    return done_;
  }
  void let_go() {
    kill(held_, SIGCONT);
    for (auto& call : calls_) call.get();
  }

  // The line is written before the call releases its process.
  PoolOptions writing_down() {
    auto options = test_options();
    options.log = [this](const Function& function, std::string_view) {
      std::lock_guard lock(mutex_);
      done_.push_back(function.owner.number);
    };
    return options;
  }

  std::mutex mutex_;
  std::vector<std::int64_t> done_;  // databases of completed calls, in order
  Pool pool_{writing_down(), clock_};
  pid_t held_ = -1;
  std::vector<std::future<void>> calls_;
};

TEST_F(JsPoolBusy, CallsOfOneDatabaseAreServedInOrder) {
  hold(1);
  for (int database : {3, 2, 4}) map_later(database);
  let_go();
  EXPECT_THAT(done(), ElementsAre(1, 3, 2, 4));
}

TEST_F(JsPoolBusy, ADesignDocumentIsCheckedWhileAllProcessesAreBusy) {
  hold(1);
  map_later(2);
  pool_.check({"f", kEmitN}, "map function in the 'v' view");
  EXPECT_EQ(error_of([&] {
              pool_.check({"f", "1"}, "map function in the 'v' view");
            }).name(),
            "compilation_error");
  EXPECT_EQ(pool_.stats().alive, 1u);  // the extra one has ended
  EXPECT_THAT(done(), IsEmpty());
  let_go();
  EXPECT_EQ(pool_.stats().died, 0u);
}

TEST_F(JsPoolBusy, MoreProcessesAreUsedAtOnce) {
  hold(1);
  map_later(2);
  auto options = test_options(2);
  pool_.configure(options);
  ASSERT_TRUE(eventually([&] { return pool_.stats().waiting == 0; }));
  calls_[1].wait();
  EXPECT_THAT(done(), ElementsAre(2));
  options.processes = 1;
  pool_.configure(options);
  let_go();
  EXPECT_EQ(pool_.stats().alive, 1u);
}

TEST_F(JsPoolBusy, StoppingEndsCallsThatRunAndCallsThatWait) {
  hold(1);
  map_later(2);
  pool_.stop();
  for (auto& call : calls_) {
    EXPECT_EQ(error_of([&] { call.get(); }).status(), 503);
  }
  EXPECT_EQ(error_of([&] { map_one(pool_, kEmitN); }).status(), 503);
  EXPECT_EQ(error_of([&] { pool_.check({"f", kEmitN}, "map function in the 'v' view"); }).status(), 503);
  EXPECT_THAT(children(), IsEmpty());
}

}  // namespace
}  // namespace divan::js
