// The built-in reduces that use keys, or the order of values or rows: _approx_count_distinct, _top_N,
// _bottom_N, _first and _last.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "divan/collation/collation.h"
#include "divan/index/views/builtin_reduce.h"

namespace divan::index::views {
namespace {

using Values = std::vector<std::string>;

std::string result_of(const Builtin& function, const Values& values) {
  const auto reducer = make_reducer(function);
  for (const std::string& value : values) reducer->add(value);
  return shown_result(function, reducer->result());
}

std::string top(std::size_t rank, const Values& values) {
  return result_of({BuiltinReduce::top, rank}, values);
}
std::string bottom(std::size_t rank, const Values& values) {
  return result_of({BuiltinReduce::bottom, rank}, values);
}

TEST(BuiltinRank, NamesHaveARankFrom1To100) {
  EXPECT_EQ(builtin_reduce("_top_1"), Builtin(BuiltinReduce::top, 1));
  EXPECT_EQ(builtin_reduce("_top_+05"), Builtin(BuiltinReduce::top, 5));
  EXPECT_EQ(builtin_reduce("_bottom_100"), Builtin(BuiltinReduce::bottom, 100));
  for (const std::string rank : {"0", "-1", "101", "99999999999999999999"}) {
    EXPECT_FALSE(builtin_reduce("_top_" + rank));
    EXPECT_EQ(invalid_builtin_reason("_top_" + rank), "rank value must be between 1 and 100");
    EXPECT_EQ(invalid_builtin_reason("_bottom_" + rank), "rank value must be between 1 and 100");
  }
  for (const std::string rank : {"", "x", "5x", "5\n", " 5", "1.5", "+"}) {
    EXPECT_FALSE(builtin_reduce("_bottom_" + rank));
    EXPECT_EQ(invalid_builtin_reason("_top_" + rank), "invalid rank reducer");
    EXPECT_EQ(invalid_builtin_reason("_bottom_" + rank), "invalid rank reducer");
  }
  EXPECT_EQ(invalid_builtin_reason("_top"), "`_top` is not a supported reduce function.");
}

TEST(BuiltinRank, ValuesInOrderEachOnce) {
  const Values values = {"3", "-1", "3", "7", "0.5", "7.0", "2"};
  EXPECT_EQ(top(3, values), "[7,3,2]");
  EXPECT_EQ(bottom(3, values), "[-1,0.5,2]");
  EXPECT_EQ(top(100, values), "[7,3,2,0.5,-1]");
  EXPECT_EQ(bottom(1, values), "[-1]");
  EXPECT_EQ(top(3, {}), "[]");
  EXPECT_EQ(bottom(2, {"7.0", "8", "7"}), "[7,8]");
}

TEST(BuiltinRank, ValuesOfAllTypesAreInTheOrderOfKeys) {
  const Values ordered = {"null",   "false", "true", "-2", "10",        R"("a")",
                          R"("B")", "[]",    "[0]",  "{}", R"({"a":1})"};
  const std::string list = fmt::format("[{}]", fmt::join(ordered, ","));
  const Values backwards(ordered.rbegin(), ordered.rend());
  EXPECT_EQ(bottom(11, backwards), list);
  EXPECT_EQ(top(11, ordered), fmt::format("[{}]", fmt::join(backwards, ",")));
  EXPECT_EQ(top(2, ordered), R"([{"a":1},{}])");
}

TEST(BuiltinRank, AnInvalidPartialResultIsAnError) {
  for (const std::string partial : {"7", "", "{}", "[1,", "[,]", "[x]", R"([3,":2,"[7])"}) {
    const auto reducer = make_reducer({BuiltinReduce::top, 3});
    EXPECT_THROW(reducer->merge(partial), Error) << partial;
  }
}

TEST(BuiltinEdge, IsTheFirstOrLastRowInAnyOrderOfAdding) {
  const std::vector<ReducedRow> rows = {{R"("b")", {}, "k2"}, {R"("a")", {}, "k1"}, {R"("c")", {}, "k3"}};
  for (const auto& [function, expected] :
       {std::pair(BuiltinReduce::first, R"("a")"), std::pair(BuiltinReduce::last, R"("c")")}) {
    std::vector<int> order = {0, 1, 2};
    do {
      const auto reducer = make_reducer(function);
      for (const int i : order) reducer->add(rows[static_cast<std::size_t>(i)]);
      EXPECT_EQ(shown_result(function, reducer->result()), expected);
    } while (std::next_permutation(order.begin(), order.end()));
    EXPECT_EQ(make_reducer(function)->result(), "null");
    EXPECT_THROW(make_reducer(function)->merge("1"), Error);
  }
}

constexpr auto kDistinct = BuiltinReduce::approx_count_distinct;

std::string distinct_keys(int from, int to) {
  const auto reducer = make_reducer(kDistinct);
  for (int n = from; n < to; ++n)
    reducer->add({.value = "1", .encoded_key = collation::encode_key(std::to_string(n))});
  return reducer->result();
}

double estimate(int from, int to) { return std::stod(shown_result(kDistinct, distinct_keys(from, to))); }

TEST(BuiltinDistinct, FewKeysAreCountedExactly) {
  EXPECT_EQ(estimate(0, 0), 0);
  for (int n = 0; n < 100; ++n) EXPECT_EQ(estimate(n, n + 1), 1);
  EXPECT_EQ(estimate(0, 2), 2);
  EXPECT_NEAR(estimate(0, 30), 30, 1);
  EXPECT_NEAR(estimate(0, 200), 200, 5);
}

TEST(BuiltinDistinct, ManyAreEstimatedWithinSomeTwoPercent) {
  for (const int count : {1'000, 2'000, 5'000, 10'000, 100'000}) {
    double squares = 0;
    double bias = 0;
    constexpr int kSets = 20;
    for (int set = 0; set < kSets; ++set) {
      const double error = estimate(set * count, (set + 1) * count) / count - 1;
      squares += error * error;
      bias += error;
    }
    EXPECT_LE(std::sqrt(squares / kSets), 0.03) << count;
    EXPECT_LE(std::fabs(bias / kSets), 0.015) << count;
  }
}

TEST(BuiltinDistinct, AKeyCountsOnceAndValuesDoNot) {
  const auto reducer = make_reducer(kDistinct);
  for (int n = 0; n < 5'000; ++n)
    reducer->add(
        {.value = std::to_string(n), .encoded_key = collation::encode_key(n % 2 == 0 ? "1" : "1.0")});
  EXPECT_EQ(shown_result(kDistinct, reducer->result()), "1");
}

TEST(BuiltinDistinct, TheSizeOfAResultGrowsWithTheNumberOfRows) {
  EXPECT_EQ(distinct_keys(0, 0), R"("")");
  EXPECT_EQ(distinct_keys(0, 1).size(), 5u);
  EXPECT_LE(distinct_keys(0, 32).size(), 98u);
  EXPECT_EQ(distinct_keys(0, 100'000).size(), 2'050u);
  // The shorter of the two forms.
  for (int n = 600; n < 1'100; n += 10) EXPECT_LE(distinct_keys(0, n).size(), 2'050u);
}

TEST(BuiltinDistinct, AnInvalidPartialResultIsAnError) {
  const std::string all(2'048, 'A');
  for (const std::string& partial :
       {std::string("7"), std::string(), std::string("\""), std::string(R"("AA")"), std::string(R"("AAA")"),
        std::string(R"("AA?")"), std::string(R"("gAB")"), std::string(R"("AA3")"), '"' + all + "A\"",
        "\"3" + all.substr(1) + '"', "\"\"" + all.substr(1) + '"'}) {
    EXPECT_THROW(make_reducer(kDistinct)->merge(partial), Error) << partial;
    EXPECT_THROW(shown_result(kDistinct, partial), Error) << partial;
  }
  EXPECT_EQ(shown_result(kDistinct, '"' + all + '"'), "0");
  EXPECT_EQ(shown_result(kDistinct, R"("AAB")"), "1");
  // Saturated registers.
  EXPECT_GT(std::stoll(shown_result(kDistinct, '"' + std::string(2'048, '2') + '"')), 1'000'000'000);
}

}  // namespace
}  // namespace divan::index::views
