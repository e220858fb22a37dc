#include "divan/js/pool.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <future>

#include "divan/base/precompiled_test.h"
#include "divan/js/sandbox/lockdown.h"
#include "divan/js/test_support.h"

namespace divan::js {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

class JsPool : public testing::Test {
 protected:
  // An executable script in place of divan-js. It starts with a valid hello.
  std::string fake(const std::string& body) {
    std::ofstream(fake_) << "#!/bin/sh\nprintf '\\005\\000\\000\\000\\005SJD\\001'\n" << body << '\n';
    chmod(fake_.c_str(), 0700);
    return fake_;
  }

  void TearDown() override {
    std::filesystem::remove(fake_);
    std::filesystem::remove(been_here_);
  }

  const std::string fake_ = testing::TempDir() + "fake-" + std::to_string(getpid());
  const std::string been_here_ = fake_ + ".been-here";  // a directory that a process creates for later ones
  SystemClock clock_;
};

TEST_F(JsPool, StartsOnlyNeededProcesses) {
  Pool pool(test_options(4), clock_);
  EXPECT_THAT(children(), IsEmpty());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(map_one(pool, kEmitN, R"({"n":1})"), "1=null");
  EXPECT_THAT(children(), SizeIs(1));
  const auto stats = pool.stats();
  EXPECT_EQ(stats.alive, 1u);
  EXPECT_EQ(stats.busy, 0u);
  EXPECT_EQ(stats.started, 1u);
  EXPECT_EQ(stats.died, 0u);
  EXPECT_EQ(stats.batches, 5u);
  EXPECT_EQ(stats.documents, 5u);
  EXPECT_GT(stats.busy_time, Duration::zero());
}

TEST_F(JsPool, EndsItsProcessesInItsDestructor) {
  {
    Pool pool(test_options(), clock_);
    map_one(pool, kEmitN);
    EXPECT_THAT(children(), SizeIs(1));
  }
  EXPECT_THAT(children(), IsEmpty());
}

TEST_F(JsPool, AProgramIsCompiledOnce) {
  int loads = 0;
  auto options = test_options();
  options.log = [&](const Function&, std::string_view line) { loads += line == "loaded" ? 1 : 0; };
  Pool pool(options, clock_);
  const std::string source = "(log('loaded'), doc => emit(1))";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(map_one(pool, source), "1=null");
  EXPECT_EQ(loads, 1);
  // It is evicted when enough other programs have been used since, and not earlier.
  const auto map_others = [&](int count) {
    for (int i = 0; i < count; ++i) map_one(pool, "doc => emit(" + std::to_string(i) + ")");
  };
  constexpr int kSlots = static_cast<int>(protocol::kSlots);
  map_others(kSlots - 1);
  map_one(pool, source);
  map_one(pool, "doc => emit('one more')");
  map_one(pool, source);
  EXPECT_EQ(loads, 1);
  map_others(kSlots);
  map_one(pool, source);
  EXPECT_EQ(loads, 2);
}

TEST_F(JsPool, ManyProgramsInOneProcessAreDistinguished) {
  Pool pool(test_options(), clock_);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 40; ++i) {
      EXPECT_EQ(map_one(pool, "doc => emit(" + std::to_string(i) + ")"), std::to_string(i) + "=null");
    }
  }
  EXPECT_EQ(pool.stats().started, 1u);
}

TEST_F(JsPool, ChecksFunctions) {
  Pool pool(test_options(), clock_);
  pool.check({"f", "function (doc) { emit(1); };"}, "map function in the 'by-date' view");
  const auto no_function = error_of([&] {
    pool.check({"f", "1 + 1"}, "map function in the 'by-date' view");
  });
  EXPECT_EQ(no_function.status(), 400);
  EXPECT_EQ(no_function.name(), "compilation_error");
  EXPECT_EQ(no_function.reason(),
            "Compilation of the map function in the 'by-date' view failed: Expression does not eval to a "
            "function.");
  const auto broken = error_of([&] {
    pool.check({"f", "function (a, b) {\n return }}"}, "reduce function in the 'v' view");
  });
  EXPECT_THAT(broken.reason(),
              StartsWith("Compilation of the reduce function in the 'v' view failed: SyntaxError: "));
  EXPECT_THAT(broken.reason(), HasSubstr("(line 2)"));
  EXPECT_EQ(pool.stats().died, 0u);
}

TEST_F(JsPool, RejectsTooManyFunctionsAndTooLittleMemory) {
  Pool pool(test_options(), clock_);
  const std::vector<std::string> sources(protocol::kMaxFunctions + 1, "doc => 1");
  EXPECT_EQ(error_of([&] { map_all(pool, sources, {"{}"}); }).status(), 400);
  EXPECT_EQ(map_one(pool, kEmitN, R"({"n":1})"), "1=null");
  EXPECT_EQ(pool.stats().started, 1u);
  auto options = test_options();
  options.memory = 1;
  EXPECT_EQ(error_of([&] { Pool small(options, clock_); }).status(), 400);
}

TEST_F(JsPool, AProcessThatIsKilledInABatchIsReplaced) {
  Pool pool(test_options(), clock_);
  // The second document runs until a point in time: long enough to be detected, and in the past when the
  // batch is retried.
  const auto end = std::to_string(clock_.wall_ms() + 2500);
  const std::string source =
      "doc => { if (doc.slow) { log('slow'); while (Date.now() < " + end + ") {} } emit(doc.n); }";
  map_one(pool, source, R"({"n":0})");
  const auto victim = children();
  ASSERT_THAT(victim, SizeIs(1));
  const auto processor_time = [&] {
    std::istringstream schedstat(file_text("/proc/" + std::to_string(victim[0]) + "/schedstat"));
    std::uint64_t nanoseconds = 0;
    schedstat >> nanoseconds;
    return nanoseconds;
  };
  const auto before = processor_time();
  Limits limits;
  limits.batch = std::chrono::minutes(5);
  auto result = std::async(std::launch::async, [&] {
    return map_all(pool, {source}, {R"({"n":1})", R"({"n":2,"slow":true})", R"({"n":3})"}, limits);
  });
  ASSERT_TRUE(eventually([&] { return processor_time() > before + 20'000'000; }));
  kill(victim[0], SIGKILL);
  const auto mapped = result.get();
  ASSERT_EQ(mapped.documents(), 3u);
  for (std::size_t i : {0u, 1u, 2u}) EXPECT_EQ(shown(mapped, i, 0), std::to_string(i + 1) + "=null");
  EXPECT_EQ(pool.stats().died, 1u);
  EXPECT_EQ(pool.stats().started, 2u);
  EXPECT_THAT(children(), SizeIs(1));
  EXPECT_NE(children(), victim);
}

TEST_F(JsPool, NoDocumentFailsIfAllProcessesAreKilled) {
  // Two are idle when they die; however the pool detects it, the batch is retried in a new one.
  Pool pool(test_options(2), clock_);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::future<std::string>> calls;
    for (int i = 0; i < 2; ++i) {
      calls.push_back(std::async(std::launch::async, [&] { return map_one(pool, kEmitN, R"({"n":1})"); }));
    }
    for (auto& call : calls) EXPECT_EQ(call.get(), "1=null");
    for (const auto child : children()) kill(child, SIGKILL);
    EXPECT_EQ(map_one(pool, kEmitN, R"({"n":2})"), "2=null");
  }
}

TEST_F(JsPool, ProcessesThatDieIdleAreReapedAndReplaced) {
  Pool pool(test_options(2), clock_);
  HeldCall held(pool);
  EXPECT_EQ(map_one(pool, kEmitN, R"({"n":2})"), "2=null");
  EXPECT_EQ(held.resume(), "1=null");
  const auto victims = children();
  ASSERT_THAT(victims, SizeIs(2));
  for (const auto victim : victims) {
    kill(victim, SIGKILL);
    ASSERT_TRUE(eventually([&] { return is_zombie(victim); }));
  }
  EXPECT_EQ(map_one(pool, kEmitN, R"({"n":3})"), "3=null");
  EXPECT_EQ(pool.stats().died, 2u);
  const auto now = children();
  ASSERT_THAT(now, SizeIs(1));
  EXPECT_THAT(victims, testing::Not(testing::Contains(now[0])));
}

TEST_F(JsPool, ARequestToADeadProcessRaisesNoSignal) {
  Process process(DIVAN_JS_BINARY, std::size_t{256} << 20);
  kill(process.pid(), SIGKILL);
  ASSERT_TRUE(eventually([&] { return is_zombie(process.pid()); }));
  EXPECT_FALSE(process.call(std::string("\x03\0\0\0abc", 7), std::chrono::minutes(1)));
  EXPECT_EQ(process.failure().kind, FailureKind::crashed);
  EXPECT_EQ(process.failure().message, "the JavaScript process was killed by SIGKILL");
}

TEST_F(JsPool, AProcessThatDoesNotRespondIsKilled) {
  auto options = test_options();
  options.margin = std::chrono::seconds(2);
  Pool pool(options, clock_);
  map_one(pool, kEmitN);
  const auto victim = children();
  ASSERT_THAT(victim, SizeIs(1));
  kill(victim[0], SIGSTOP);
  Limits limits;
  limits.invocation = limits.batch = std::chrono::milliseconds(100);
  EXPECT_EQ(map_one(pool, kEmitN, R"({"n":1})", limits), "1=null");
  EXPECT_EQ(pool.stats().died, 1u);
  EXPECT_THAT(children(), SizeIs(1));
  EXPECT_NE(children(), victim);
}

TEST_F(JsPool, AProcessThatHasGrownIsReplaced) {
  auto options = test_options();
  options.recycle = 1;
  Pool pool(options, clock_);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(map_one(pool, kEmitN, R"({"n":1})"), "1=null");
  EXPECT_EQ(pool.stats().recycled, 3u);
  EXPECT_EQ(pool.stats().started, 3u);
  EXPECT_EQ(pool.stats().died, 0u);
  EXPECT_THAT(children(), IsEmpty());
}

TEST_F(JsPool, ReplacesIdleAndBusyProcesses) {
  Pool pool(test_options(2), clock_);
  HeldCall held(pool);
  map_one(pool, kEmitN);
  EXPECT_THAT(children(), SizeIs(2));
  pool.replace_processes();
  EXPECT_THAT(children(), testing::ElementsAre(held.process()));
  EXPECT_EQ(held.resume(), "1=null");
  EXPECT_THAT(children(), IsEmpty());
  EXPECT_EQ(pool.stats().recycled, 2U);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(map_one(pool, kEmitN, R"({"n":2})"), "2=null");
  EXPECT_EQ(pool.stats().started, 3U);
}

TEST_F(JsPool, AProcessThatCannotBeStartedIsAnError) {
  for (const std::string binary : {"/nowhere/divan-js", "/bin/true", "/bin/false"}) {
    auto options = test_options();
    options.binary = binary;
    Pool pool(options, clock_);
    for (int i = 0; i < 3; ++i) {
      const auto error = error_of([&] { map_one(pool, kEmitN); });
      EXPECT_EQ(error.status(), 500);
      EXPECT_EQ(error.name(), "os_process_error");
      EXPECT_THAT(error.reason(), HasSubstr(binary));
    }
    EXPECT_EQ(pool.stats().alive, 0u);
    EXPECT_THAT(children(), IsEmpty());
  }
}

TEST_F(JsPool, MalformedResponsesAreDetected) {
  auto options = test_options();
  options.margin = std::chrono::seconds(1);
  const std::string read_request = "head -c 40 >/dev/null; ";
  for (const std::string response : {
           "printf '\\005\\000\\000\\000hello'",            // not a response
           "printf '\\377\\377\\377\\377hello'; sleep 60",  // too long
           "printf '\\100\\000\\000\\000hello'",            // truncated
           "head -c 100000 /dev/zero; sleep 60",            // empty frames
           "exit 7",
       }) {
    options.binary = fake(read_request + response);
    Pool pool(options, clock_);
    const auto error = error_of([&] { map_one(pool, kEmitN); });
    EXPECT_EQ(error.name(), "os_process_error") << response;
    EXPECT_EQ(pool.stats().died, 2u) << response;
    EXPECT_EQ(pool.stats().alive, 0u) << response;
    EXPECT_EQ(error_of([&] {
                pool.check({"f", kEmitN}, "map function in the 'v' view");
              }).name(),
              "compilation_error")
        << response;
  }
  EXPECT_THAT(children(), IsEmpty());
}

TEST_F(JsPool, AProcessThatNeverRespondsIsKilled) {
  auto options = test_options();
  options.margin = std::chrono::milliseconds(300);
  options.binary = fake("exec sleep 600");
  Pool pool(options, clock_);
  Limits limits;
  limits.invocation = limits.batch = std::chrono::milliseconds(10);
  EXPECT_THAT(error_of([&] { map_one(pool, kEmitN, "{}", limits); }).reason(),
              HasSubstr("did not respond in time"));
  EXPECT_THAT(children(), IsEmpty());
}

TEST_F(JsPool, StoppingFailsNoDocument) {
  // The process dies once, so that stop() ends the last attempt.
  auto options = test_options();
  options.invocation = std::chrono::hours(1);
  Pool pool(options, clock_);
  auto call = std::async(std::launch::async, [&] { return map_one(pool, "doc => { for (;;); }"); });
  ASSERT_TRUE(eventually([&] { return pool.stats().started == 1 && pool.stats().busy == 1; }));
  kill(children().at(0), SIGKILL);
  ASSERT_TRUE(eventually([&] { return pool.stats().started == 2; }));
  pool.stop();
  EXPECT_EQ(error_of([&] { call.get(); }).status(), 503);
}

// The process loads the program, and reports a function as stuck in a document that it was not sent.
TEST_F(JsPool, AStuckResponseForAnUnsentDocumentIsRejected) {
  auto options = test_options();
  options.binary = fake(
      "printf '\\016\\0\\0\\0\\001\\001\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0'\n"
      "printf '\\005\\0\\0\\0\\0\\007\\0\\0\\0'; sleep 60");
  Pool pool(options, clock_);
  EXPECT_EQ(map_one(pool, kEmitN), "!the JavaScript process violated the protocol");
}

// The first process is stuck in the third document. The second one gets the two before it and processes only
// one.
TEST_F(JsPool, TheRetryOfDocumentsBeforeAStuckOneMayBePartial) {
  auto options = test_options();
  options.binary = fake(
      "printf '\\016\\0\\0\\0\\001\\001\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0'\n"
      "if mkdir '" +
      been_here_ +
      "' 2>/dev/null; then\n"
      "printf '\\005\\0\\0\\0\\0\\002\\0\\0\\0'\n"
      "else\n"
      "printf '\\037\\0\\0\\0\\002\\001\\0\\0\\0\\0\\001\\0\\0\\0\\001\\0\\0\\0001'\n"
      "printf '\\004\\0\\0\\0null\\0\\0\\0\\0\\0\\0\\0\\0'\n"
      "fi; sleep 60");
  Pool pool(options, clock_);
  const auto result = map_all(pool, {kEmitN}, {R"({"n":1})", R"({"n":2})", R"({"n":3})"});
  ASSERT_EQ(result.documents(), 1u);
  EXPECT_EQ(shown(result, 0, 0), "1=null");
  EXPECT_EQ(pool.stats().started, 2u);
}

TEST_F(JsPool, StoppingWhileAProcessStartsFailsNoFunction) {
  auto options = test_options();
  options.binary = "/bin/sleep";  // whose argument, the memory limit, is a number of seconds
  Pool pool(options, clock_);
  auto call = std::async(std::launch::async, [&] { return map_one(pool, kEmitN); });
  ASSERT_TRUE(eventually([&] { return !children().empty(); }));
  pool.stop();
  EXPECT_EQ(error_of([&] { call.get(); }).status(), 503);
}

TEST_F(JsPool, AHangingProcessBlocksNoOther) {
  Pool pool(test_options(2), clock_);
  HeldCall held(pool);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(map_one(pool, kEmitN, R"({"n":2})"), "2=null");
    if (i % 5 != 0) continue;
    // Neither does one that dies.
    const auto now = children();
    for (const auto child : now) {
      if (child != held.process()) kill(child, SIGKILL);
    }
  }
  EXPECT_EQ(pool.stats().busy, 1u);
  EXPECT_EQ(held.resume(), "1=null");
}

TEST_F(JsPool, LimitsChangeAtRunTime) {
  auto options = test_options();
  options.invocation = std::chrono::milliseconds(50);
  Pool pool(options, clock_);
  const std::string loop = "doc => { for (;;); }";
  EXPECT_THAT(map_one(pool, loop), StartsWith("!exceeded the time"));
  // A fixed amount of work, since real time depends on the load of the machine.
  const std::string slow =
      "doc => { var sum = 0; for (var i = 0; i < 1e7; ++i) sum += Date.now(); if (sum > 0) emit(1); }";
  EXPECT_THAT(map_one(pool, slow), StartsWith("!exceeded the time"));
  options.invocation = std::chrono::minutes(1);
  pool.configure(options);
  EXPECT_EQ(map_one(pool, slow), "1=null");
  const auto before = children();
  options.memory = std::size_t{192} << 20;
  pool.configure(options);
  EXPECT_THAT(children(), IsEmpty());
  EXPECT_EQ(map_one(pool, kEmitN, R"({"n":1})"), "1=null");
  EXPECT_NE(children(), before);
  if (!sandbox::kSanitized) {
    EXPECT_THAT(file_text("/proc/" + std::to_string(children().at(0)) + "/limits"),
                testing::ContainsRegex("Max data size +201326592 +201326592"));
  }
  options.memory = 1;
  EXPECT_EQ(error_of([&] { pool.configure(options); }).status(), 400);
}

TEST_F(JsPool, FailuresAreCounted) {
  Pool pool(test_options(), clock_);
  map_all(pool, {"doc => { throw 1; }", kEmitN, "1"}, {"{}", "{}"});
  EXPECT_EQ(pool.stats().failures, 4u);
  const std::vector<ReduceGroup> groups(3);
  pool.reduce({"r", "() => { throw 1; }"}, false, groups);
  EXPECT_EQ(pool.stats().failures, 7u);
}

TEST_F(JsPool, ServesManyThreadsAtOnce) {
  Pool pool(test_options(3), clock_);
  std::vector<std::future<void>> threads;
  for (int thread = 0; thread < 6; ++thread) {
    threads.push_back(std::async(std::launch::async, [&pool, thread] {
      for (int i = 0; i < 30; ++i) {
        const auto n = std::to_string(thread * 1000 + i);
        const auto document = R"({"n":)" + n + "}";
        EXPECT_EQ(map_one(pool, "doc => emit(doc.n, " + std::to_string(i % 7) + ")", document),
                  n + "=" + std::to_string(i % 7));
        const std::vector<ReduceRow> rows = {{"0", "a", n}, {"0", "b", "1"}};
        const std::vector<ReduceGroup> groups = {rows};
        EXPECT_EQ(std::get<std::string>(pool.reduce({"r", "(k, v) => sum(v)"}, false, groups)[0]),
                  std::to_string(thread * 1000 + i + 1));
        if (i % 10 == 0) pool.check({"f", "doc => 1"}, "map function in the 'v' view");
      }
    }));
  }
  for (auto& thread : threads) thread.get();
  const auto stats = pool.stats();
  EXPECT_LE(stats.alive, 3u);
  EXPECT_LE(stats.started, 3u + 18u);  // each check may find all busy and start one of its own
  EXPECT_EQ(stats.died, 0u);
  EXPECT_EQ(stats.busy, 0u);
  EXPECT_EQ(stats.documents, 180u);
  EXPECT_EQ(stats.groups, 180u);
}

TEST_F(JsPool, ChildrenInheritNothing) {
  // A file descriptor without close-on-exec, as some libraries leave it, and a secret.
  const int forgotten = open("/dev/null", O_RDONLY);
  ASSERT_GE(forgotten, 3);
  setenv("DIVAN_TEST_SECRET", "do-not-tell", 1);
  Pool pool(test_options(2), clock_);
  HeldCall held(pool);
  // A second process, which must not hold the first one's socket.
  EXPECT_EQ(map_one(pool, kEmitN, R"({"n":2})"), "2=null");
  for (const auto child : children()) {
    const auto directory = "/proc/" + std::to_string(child);
    EXPECT_THAT(entries(directory + "/fd"), testing::UnorderedElementsAre("0", "1", "2")) << child;
    EXPECT_THAT(file_text(directory + "/environ"), testing::Not(HasSubstr("do-not-tell")));
    EXPECT_NE(getpgid(child), getpgrp());
  }
  EXPECT_EQ(held.resume(), "1=null");
  unsetenv("DIVAN_TEST_SECRET");
  close(forgotten);
}

}  // namespace
}  // namespace divan::js
