// List functions that read their rows in pages.
#include "divan/base/error.h"
#include "divan/base/precompiled_test.h"
#include "divan/js/test_support.h"

namespace divan::js {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A view with `pages` pages of rows after the first one, which is [0]: [1], [2] ...
class JsList : public ::testing::Test {
 protected:
  std::string list(const std::string& source, int pages, const Limits& limits = {}) {
    auto program = program_of({source});
    program.root = R"({"name":"d"})";
    int page = 0;
    steps_.clear();
    const auto step = [&](const std::string& output, bool wants_rows) {
      steps_.push_back((wants_rows ? "" : "+") + output);
      if (!wants_rows) return Pool::ListRows{};
      if (page == fails_at_) throw conflict();
      ++page;
      return Pool::ListRows{"[" + std::to_string(page) + "]", page == pages};
    };
    const auto outcome =
        pool_.list(program, R"([{"head":1},{"query":{},"headers":{}}])", "[0]", step, limits);
    const auto* failure = std::get_if<Failure>(&outcome);
    return failure != nullptr ? "!" + failure->message : std::get<std::string>(outcome);
  }

  SystemClock clock_;
  Pool pool_{test_options(), clock_};
  std::vector<std::string> steps_;  // the output of each
  int fails_at_ = -1;               // the page that cannot be read
};

TEST_F(JsList, RowsComeInPagesAndOutputGoesBack) {
  const std::string source =
      "function (head) { send(this.name); send(head.head); for (let row; (row = getRow()) !== null;) "
      "send(row); "
      "return getRow(); }";
  EXPECT_EQ(list(source, 3), R"({"body":"3"})");
  EXPECT_THAT(steps_, ElementsAre(R"({"body":"d10","start":{}})", R"({"body":"1"})", R"({"body":"2"})"));
  EXPECT_EQ(pool_.stats().applied, 1u);
  EXPECT_EQ(pool_.stats().busy, 0u);
  EXPECT_EQ(pool_.stats().died, 0u);
}

TEST_F(JsList, AFunctionNeedNotReadToTheEnd) {
  EXPECT_EQ(list("() => 'x' + getRow()", 3), R"({"body":"x0","start":{}})");
  EXPECT_THAT(steps_, ElementsAre());
  EXPECT_EQ(list("() => 'x' + getRow() + getRow()", 3), R"({"body":"x01"})");
  EXPECT_EQ(steps_.size(), 1u);
  EXPECT_EQ(pool_.stats().started, 1u);  // its process is used again
}

TEST_F(JsList, EmptyPagesAreSkipped) {
  auto program = program_of(
      {"() => { const rows = []; for (let row; (row = getRow());) rows.push(row); return rows; }"});
  int page = 0;
  const auto step = [&](const std::string&, bool) {
    ++page;
    return Pool::ListRows{page < 3 ? "[]" : "[7]", page == 3};
  };
  const auto outcome = pool_.list(program, "[{},{}]", "[1]", step);
  EXPECT_EQ(std::get<std::string>(outcome), R"({"body":"1,7"})");
}

TEST_F(JsList, LargeOutputIsSentBeforeTheRowsEnd) {
  EXPECT_EQ(list("() => { for (let i = 0; i < 3; i++) send('x'.repeat(1 << 20)); return getRow(); }", 1),
            R"({"body":"0"})");
  ASSERT_EQ(steps_.size(), 3u);
  for (const auto& step : steps_) {
    EXPECT_EQ(step.front(), '+');
    EXPECT_GT(step.size(), 1u << 20);
  }
}

TEST_F(JsList, StartCountsUntilOutputWasSentAndARowRead) {
  EXPECT_EQ(list("() => { getRow(); start({code: 400}); getRow(); start({code: 401}); return 'x'; }", 2),
            R"({"body":"x","start":{"code":401}})");
  EXPECT_THAT(steps_, ElementsAre(R"({"body":"","start":{"code":400}})"));
  EXPECT_EQ(list("() => { send('x'); getRow(); getRow(); start({code: 400}); }", 2), R"({"body":""})");
}

TEST_F(JsList, AFailureEndsTheList) {
  EXPECT_THAT(list("() => { getRow(); getRow();\n oops(); }", 2), HasSubstr("oops is not defined (line 2)"));
  EXPECT_EQ(list("() => { getRow(); getRow(); throw {forbidden: 'no'}; }", 2),
            R"({"error":["forbidden","no"]})");
  EXPECT_THAT(list("() => {", 2), HasSubstr("SyntaxError"));
  EXPECT_EQ(pool_.stats().failures, 2u);
  EXPECT_EQ(pool_.stats().died, 0u);
}

TEST_F(JsList, EachStepHasTheTimeOfACall) {
  Limits limits;
  limits.invocation = std::chrono::milliseconds(200);
  const std::string work = "const work = () => { for (const end = Date.now() + 100; Date.now() < end;); };";
  EXPECT_EQ(list("() => {" + work + " while (getRow() !== null) work(); return 'done'; }", 5, limits),
            R"({"body":"done"})");
  EXPECT_THAT(list("() => { getRow(); getRow(); for (;;); }", 5, limits), HasSubstr("time limit"));
  EXPECT_EQ(steps_.size(), 1u);
  EXPECT_EQ(list("() => 'next'", 2), R"({"body":"next","start":{}})");
}

// The function still waits for rows.
TEST_F(JsList, AProcessWhoseListWasAbandonedIsReplaced) {
  fails_at_ = 1;
  EXPECT_EQ(error_of([&] { list("() => { while (getRow() !== null); }", 3); }).status(), 409);
  EXPECT_EQ(pool_.stats().alive, 0u);
  fails_at_ = -1;
  EXPECT_EQ(list("() => 'x'", 3), R"({"body":"x","start":{}})");
}

TEST_F(JsList, AProcessThatDiesIsTriedAgainBeforeTheFirstStepOnly) {
  list("() => {}", 2);
  ASSERT_EQ(children().size(), 1u);
  kill(children()[0], SIGKILL);
  EXPECT_EQ(list("() => 'x'", 2), R"({"body":"x","start":{}})");
  const auto died = pool_.stats().died;
  auto program = program_of({"() => { while (getRow() !== null); return 'end'; }"});
  const auto step = [&](const std::string&, bool) {
    for (const auto child : children()) kill(child, SIGKILL);
    return Pool::ListRows{"[1]", true};
  };
  const auto outcome = pool_.list(program, "[{},{}]", "[0]", step);
  EXPECT_EQ(std::get<Failure>(outcome).kind, FailureKind::crashed);
  EXPECT_EQ(pool_.stats().died, died + 1);
}

// The rows of a view may need a reduction, for which no process would be left.
TEST_F(JsList, ALongListLeavesTheProcessesToOtherCalls) {
  auto program = program_of(
      {"() => { const rows = []; for (let row; (row = getRow());) rows.push(row); return rows; }"});
  std::string mapped;
  const auto step = [&](const std::string&, bool) {
    mapped = map_one(pool_, kEmitN, R"({"n":5})");
    EXPECT_EQ(pool_.running().size(), 1u);
    EXPECT_EQ(pool_.running().front().purpose, Purpose::list);
    return Pool::ListRows{"[2]", true};
  };
  const auto outcome = pool_.list(program, "[{},{}]", "[1]", step);
  EXPECT_EQ(std::get<std::string>(outcome), R"({"body":"1,2"})");
  EXPECT_EQ(mapped, "5=null");
  EXPECT_EQ(pool_.stats().alive, 1u);  // the additional one has ended
}

TEST_F(JsList, RowsThatAreTooLargeAreRefused) {
  const std::string rows = "[\"" + std::string(protocol::kMaxFrame, 'x') + "\"]";
  const auto program = program_of({"() => 1"});
  const auto step = [](const std::string&, bool) { return Pool::ListRows(); };
  EXPECT_EQ(error_of([&] { pool_.list(program, "[]", rows, step); }).status(), 413);
  EXPECT_EQ(error_of([&] {
              pool_.list(program_of({"() => { while (getRow()); }"}), "[{},{}]", "[1]",
                         [&](const std::string&, bool) {
                           return Pool::ListRows{rows, true};
                         });
            }).status(),
            413);
}

TEST_F(JsList, LinesOfTheLogAreWrittenAfterEachStep) {
  auto options = test_options();
  std::vector<std::string> lines;
  options.log = [&](const Function&, std::string_view line) { lines.emplace_back(line); };
  Pool pool(options, clock_);
  const auto program = program_of({"() => { log('a'); getRow(); getRow(); log('b'); }"});
  pool.list(program, "[{},{}]", "[1]", [&](const std::string&, bool) {
    EXPECT_THAT(lines, ElementsAre("a"));
    return Pool::ListRows{"[2]", true};
  });
  EXPECT_THAT(lines, ElementsAre("a", "b"));
}

}  // namespace
}  // namespace divan::js
