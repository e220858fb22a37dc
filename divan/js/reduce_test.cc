#include "divan/base/error.h"
#include "divan/base/precompiled_test.h"
#include "divan/js/requests.h"
#include "divan/js/test_support.h"

namespace divan::js {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

class JsReduce : public testing::Test {
 protected:
  std::vector<std::string> reduce(const std::string& source, bool rereduce,
                                  const std::vector<std::vector<ReduceRow>>& groups,
                                  const Limits& limits = {}) {
    const std::vector<ReduceGroup> spans(groups.begin(), groups.end());
    std::vector<std::string> shown;
    for (const auto& reduction : pool_.reduce({"r", source}, rereduce, spans, limits)) {
      const auto* failure = std::get_if<Failure>(&reduction);
      shown.push_back(failure != nullptr ? "!" + failure->message : std::get<std::string>(reduction));
    }
    return shown;
  }

  SystemClock clock_;
  Pool pool_{test_options(), clock_};
};

TEST_F(JsReduce, GetsKeysWithIdsAndValues) {
  EXPECT_THAT(reduce("function (keys, values, rereduce) { return [keys, values, rereduce]; }", false,
                     {{{"1", "a", "true"}, {R"(["x",{}])", "quote\"\\\n\xc3\xa4", R"({"v":[]})"}},
                      {{"null", "b", "2.5"}},
                      {}}),
              ElementsAre(R"([[[1,"a"],[["x",{}],"quote\"\\\nä"]],[true,{"v":[]}],false])",
                          R"([[[null,"b"]],[2.5],false])", "[[],[],false]"));
}

TEST_F(JsReduce, ARereduceGetsNullAndValues) {
  EXPECT_THAT(reduce("function (keys, values, rereduce) { return [keys, values, rereduce]; }", true,
                     {{{"1", "a", "10"}, {"2", "b", "20"}}, {{"", "", "30"}}}),
              ElementsAre("[null,[10,20],true]", "[null,[30],true]"));
}

TEST_F(JsReduce, EachGroupGetsItsOwnResult) {
  std::vector<std::string> numbers;
  for (int i = 0; i < 2000; ++i) numbers.push_back(std::to_string(i));
  std::vector<std::vector<ReduceRow>> groups;
  for (int i = 0; i + 1 < 2000; ++i) groups.push_back({{"0", "a", numbers[i]}, {"0", "b", numbers[i + 1]}});
  const auto sums = reduce("(keys, values) => sum(values)", false, groups);
  ASSERT_EQ(sums.size(), groups.size());
  for (int i = 0; i + 1 < 2000; ++i) ASSERT_EQ(sums[i], std::to_string(2 * i + 1));
  EXPECT_EQ(pool_.stats().groups, groups.size());
}

TEST_F(JsReduce, AnEmptyRequestIsValid) {
  EXPECT_THAT(reduce("() => 1", false, {}), ElementsAre());
  EXPECT_EQ(pool_.stats().started, 0u);
}

TEST_F(JsReduce, AFailureAffectsItsGroupOnly) {
  EXPECT_THAT(
      reduce("function (k, v) { if (v[0] == 1) throw new Error('one'); if (v[0] == 2) return; "
             "if (v[0] == 3) { var o = {}; o.o = o; return o; } v.push(1); return v; }",
             false,
             {{{"0", "a", "0"}}, {{"0", "a", "1"}}, {{"0", "a", "2"}}, {{"0", "a", "3"}}, {{"0", "a", "4"}}}),
      ElementsAre("[0,1]", "!Error: one (line 1)", "null", "!TypeError: cyclic object value", "[4,1]"));
  EXPECT_THAT(reduce("1 + 1", false, {{}, {}}), ElementsAre("!Expression does not eval to a function.",
                                                            "!Expression does not eval to a function."));
}

TEST_F(JsReduce, EmitIsWithoutEffect) {
  EXPECT_THAT(reduce("() => { emit(1, 2); return 3; }", false, {{}, {}}), ElementsAre("3", "3"));
}

TEST_F(JsReduce, AnEndlessLoopCostsAFewTimeoutsNotOnePerGroup) {
  Limits limits;
  limits.invocation = std::chrono::milliseconds(20);
  const std::vector<std::vector<ReduceRow>> groups(200, {{"0", "a", "1"}});
  const std::string source = "() => { calls = (this.calls || 0) + 1; log(calls); for (;;); }";
  std::vector<std::string> lines;
  auto options = test_options();
  options.log = [&](const Function&, std::string_view line) { lines.emplace_back(line); };
  Pool pool(options, clock_);
  const std::vector<ReduceGroup> spans(groups.begin(), groups.end());
  const auto reductions = pool.reduce({"r", source}, false, spans, limits);
  ASSERT_EQ(reductions.size(), 200u);
  for (const auto& reduction : reductions) {
    ASSERT_EQ(std::get<Failure>(reduction).kind, FailureKind::timeout);
  }
  EXPECT_THAT(lines, ElementsAre("1", "2", "3"));
}

TEST_F(JsReduce, ContinuesUntilAllGroupsAreDone) {
  // 9 results of 10 MB: a response is full from 32 MiB on, and the limit of all results is 64 MiB.
  const std::vector<std::vector<ReduceRow>> groups(9, {{"0", "a", "1"}});
  const auto results = reduce("() => 'x'.repeat(1e7)", false, groups);
  ASSERT_EQ(results.size(), 9u);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(results[i].size(), 10'000'002u);
  for (std::size_t i = 6; i < 9; ++i) EXPECT_EQ(results[i], "!the results of the call exceed the size limit");
  EXPECT_EQ(pool_.stats().batches, 3u);
}

TEST_F(JsReduce, AResultThatDoesNotShrinkIsAFailure) {
  auto options = test_options();
  options.reduce_limit = {.mode = ReduceLimit::Mode::on, .threshold = 100, .ratio = 2};
  Pool pool(options, clock_);
  const Function function{"v", "(keys, values, rereduce) => values[0]", {"db", 1, "_design/d"}};
  const auto reduced = [&](bool rereduce, const std::vector<ReduceRow>& rows) {
    const std::vector<ReduceGroup> groups{rows};
    return pool.reduce(function, rereduce, groups).front();
  };
  const std::string value = '"' + std::string(98, 'x') + '"';
  const std::string longer = '"' + std::string(99, 'x') + '"';
  const ReduceRow row{"17", "id", longer};
  // The input's size is that of [[[17,"id"],"xxx"],].
  const auto failure = std::get<Failure>(reduced(false, {row}));
  EXPECT_EQ(failure.kind, FailureKind::reduce_overflow);
  EXPECT_EQ(failure.message,
            "Reduce output must shrink more rapidly: input size: 116 output size: 101 "
            "context: db/_design/d/_view/v");
  EXPECT_THAT(std::get<Failure>(reduced(true, {row})).message,
              StartsWith("Reduce output must shrink more rapidly: input size: 104 output size: 101 "));
  // Up to the threshold any result is accepted; beyond it, results of at most half the input's size.
  EXPECT_EQ(std::get<std::string>(reduced(false, {{"17", "id", value}})), value);
  EXPECT_EQ(std::get<std::string>(reduced(false, {row, {"1", "", "1" + std::string(75, '0')}})), longer);
  EXPECT_TRUE(std::holds_alternative<Failure>(reduced(false, {row, {"1", "", "1" + std::string(74, '0')}})));

  // Changed settings apply at once.
  options.reduce_limit.ratio = 1.1;
  pool.configure(options);
  EXPECT_EQ(std::get<std::string>(reduced(false, {row})), longer);
  options.reduce_limit = {.mode = ReduceLimit::Mode::log, .threshold = 0, .ratio = 100};
  pool.configure(options);
  EXPECT_EQ(std::get<std::string>(reduced(false, {row})), longer);
  options.reduce_limit.mode = ReduceLimit::Mode::off;
  pool.configure(options);
  EXPECT_EQ(std::get<std::string>(reduced(false, {row})), longer);
}

TEST_F(JsReduce, RequestsAreSplitIntoFrames) {
  const std::string value(protocol::kMaxFrame / 3, '1');
  const std::vector<ReduceRow> rows = {{"0", "a", value}};
  const std::vector<ReduceGroup> groups(3, rows);
  EXPECT_EQ(fitting(groups), 2u);
  EXPECT_LE(reduce_request(0, false, std::span(groups).first(2), {}).size(), protocol::kMaxFrame + 4);
  const std::vector<ReduceRow> too_many = {rows[0], rows[0], rows[0]};
  const std::vector<ReduceGroup> one = {too_many};
  EXPECT_THROW(fitting(one), Error);
  // An id may need six times its size as JSON.
  const std::string id(protocol::kMaxFrame / 5, '\x01');
  const std::vector<ReduceRow> long_id = {{"0", id, "1"}};
  const std::vector<ReduceGroup> with_long_id = {long_id};
  EXPECT_THROW(fitting(with_long_id), Error);
}

TEST_F(JsReduce, DocumentsAreSplitIntoFrames) {
  const std::string document(protocol::kMaxFrame / 3, ' ');
  EXPECT_EQ(fitting(std::vector<std::string_view>(3, document)), 2u);
  EXPECT_LE(map_request(0, std::vector<std::string_view>(2, document), {}).size(), protocol::kMaxFrame + 4);
  const std::string too_long(protocol::kMaxFrame, ' ');
  EXPECT_THROW(fitting(std::vector<std::string_view>(1, too_long)), Error);
}

}  // namespace
}  // namespace divan::js
