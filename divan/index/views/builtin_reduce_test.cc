#include "divan/index/views/builtin_reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "divan/base/json.h"
#include "divan/index/views/builtin_reduce_value.h"

namespace divan::index::views {
namespace {

using Values = std::vector<std::string>;

constexpr std::string_view kSumReason =
    "The _sum function requires that map values be numbers, arrays of numbers, or objects. Objects cannot be "
    "mixed with other data structures. Objects can be arbitrarily nested, provided that the values for all "
    "fields are themselves numbers, arrays of numbers, or objects.";

std::string reduce(BuiltinReduce function, const Values& values,
                   const SumLimit& limit = SumLimit::default_limit()) {
  const auto reducer = make_reducer(function, limit);
  for (const std::string& value : values) reducer->add(value);
  return reducer->result();
}

std::string rereduce(BuiltinReduce function, const Values& partials) {
  const auto reducer = make_reducer(function);
  for (const std::string& partial : partials) reducer->merge(partial);
  return reducer->result();
}

std::string sum(const Values& values) { return reduce(BuiltinReduce::sum, values, SumLimit::unlimited()); }
std::string stats(const Values& values) { return reduce(BuiltinReduce::stats, values); }

ReduceError reduce_error(BuiltinReduce function, const Values& values,
                         const SumLimit& limit = SumLimit::default_limit()) {
  try {
    ADD_FAILURE() << reduce(function, values, limit) << " is no error";
  } catch (const ReduceError& error) { return error; }
  return {"", ""};
}

void expect_sum_error(const Values& values, std::string_view caused_by) {
  const ReduceError error = reduce_error(BuiltinReduce::sum, values);
  EXPECT_EQ(error.status(), 500);
  EXPECT_EQ(error.name(), "builtin_reduce_error");
  EXPECT_EQ(error.reason(), kSumReason);
  EXPECT_EQ(json::member(error.row_value(), "caused_by"), caused_by) << error.row_value();
}

void expect_stats_error(const Values& values, std::string_view reason) {
  const ReduceError error = reduce_error(BuiltinReduce::stats, values);
  EXPECT_EQ(error.status(), 500);
  EXPECT_EQ(error.name(), "invalid_value");
  EXPECT_EQ(error.reason(), reason);
}

TEST(BuiltinReduce, rejects_counts_that_overflow) {
  EXPECT_EQ(rereduce(BuiltinReduce::count, {"9223372036854775806", "1"}), "9223372036854775807");
  EXPECT_THROW(rereduce(BuiltinReduce::count, {"9223372036854775806", "2"}), Error);
  EXPECT_THROW(rereduce(BuiltinReduce::count, {"\"1\""}), Error);
}

TEST(BuiltinReduce, is_named_by_the_beginning_of_the_source) {
  EXPECT_EQ(builtin_reduce("_count"), BuiltinReduce::count);
  EXPECT_EQ(builtin_reduce("_sum\n"), BuiltinReduce::sum);
  EXPECT_EQ(builtin_reduce("_statsorama"), BuiltinReduce::stats);
  EXPECT_EQ(builtin_reduce("_approx_count_distinct "), BuiltinReduce::approx_count_distinct);
  EXPECT_EQ(builtin_reduce("_first"), BuiltinReduce::first);
  EXPECT_EQ(builtin_reduce("_lastly"), BuiltinReduce::last);
  EXPECT_FALSE(builtin_reduce("_random_junk"));
  EXPECT_FALSE(builtin_reduce("function (keys, values) { return sum(values); }"));
}

TEST(BuiltinReduce, counts_rows_of_any_value) {
  EXPECT_EQ(reduce(BuiltinReduce::count, {}), "0");
  EXPECT_EQ(reduce(BuiltinReduce::count, {"null", "17", R"("x")", R"({"a":[]})"}), "4");
  EXPECT_EQ(rereduce(BuiltinReduce::count, {"4", "0", "38"}), "42");
  EXPECT_THROW(rereduce(BuiltinReduce::count, {"[]"}), Error);
}

TEST(BuiltinReduce, sums_numbers) {
  EXPECT_EQ(sum({}), "0");
  EXPECT_EQ(sum({"1", "2", "-5"}), "-2");
  EXPECT_EQ(sum({"0.1", "0.2"}), "0.30000000000000004");
  EXPECT_EQ(sum({"1", "0.5"}), "1.5");
  EXPECT_EQ(sum({"1e3", "1"}), "1001");
  EXPECT_EQ(sum({"[1,-0.0]"}), "[1,0]");
  EXPECT_EQ(rereduce(BuiltinReduce::sum, {"3", "0.5", "-1"}), "2.5");
  EXPECT_EQ(rereduce(BuiltinReduce::sum, {sum({}), R"({"a":1})", sum({})}), R"({"a":1})");
}

// The examples of CouchDB's documentation (ddocs.rst, "_sum").
TEST(BuiltinReduce, sums_arrays_by_element) {
  EXPECT_EQ(sum({"2", "[3,5,7]", "[0,0,0,42]", "1", "3"}), "[9,5,7,42]");
  EXPECT_EQ(sum({"2", "[3,5,7]"}), "[5,5,7]");
  EXPECT_EQ(sum({"[1,4,6]", "1"}), "[2,4,6]");
  EXPECT_EQ(sum({"[0,3,3]", "[3,2,4]"}), "[3,5,7]");
  EXPECT_EQ(sum({"[]"}), "[0]");
  EXPECT_EQ(sum({"[]", "[1,2]", "[0.5]"}), "[1.5,2]");
}

// The objects of CouchDB's sum_values_test.
TEST(BuiltinReduce, sums_objects_by_member) {
  const std::string x = R"({"a":1,"b":[1,2],"c":{"d":3},"g":1})";
  const std::string y = R"({"a":2,"b":3,"c":{"e":5},"f":1,"g":1})";
  const std::string z = R"({"a":3,"b":[4,2],"c":{"d":3,"e":5},"f":1,"g":2})";
  EXPECT_EQ(sum({x, y}), z);
  EXPECT_EQ(sum({y, x}), z);
  EXPECT_EQ(sum({"0", x, "{}", y}), z);
  EXPECT_EQ(sum({R"({"b":1,"a":2})"}), R"({"b":1,"a":2})");
  EXPECT_EQ(sum({R"({"b":1,"a":2})", R"({"\u0062":1,"\u00e9\"":1})"}), "{\"a\":2,\"b\":2,\"\u00e9\\\"\":1}");
  EXPECT_EQ(sum({R"({"a":0})", R"({"a":{"b":1}})", R"({"a":{"b":1}})"}), R"({"a":{"b":2}})");
  EXPECT_EQ(sum({R"({"a":1,"b":1,"a":2})", R"({"c":3,"a":1})"}), R"({"a":3,"b":1,"c":3})");
}

TEST(BuiltinReduce, does_not_check_values_to_which_nothing_is_added) {
  EXPECT_EQ(sum({R"({"a":"x","b":[null]})"}), R"({"a":"x","b":[null]})");
  EXPECT_EQ(sum({R"([1,"x"])"}), R"([1,"x"])");
  EXPECT_EQ(sum({R"({"a":"x"})", R"({"b":1})"}), R"({"a":"x","b":1})");
}

TEST(BuiltinReduce, sum_rejects_other_types) {
  expect_sum_error({R"("baz")"}, R"("baz")");
  expect_sum_error({"1", "null"}, "null");
  expect_sum_error({"true"}, "true");
  expect_sum_error({R"(["a"])"}, "[0]");
  expect_sum_error({"[1,2,3]", R"([1,"x",1])"}, "[2,3]");
  expect_sum_error({"[1,[2]]", "[1,[2]]"}, "[[2]]");
  expect_sum_error({R"({"a":1})", "5"}, "5");
  expect_sum_error({R"({"a":1})", "[5]"}, "[5]");
  expect_sum_error({"5", R"({"a":1})"}, R"({"a":1})");
  expect_sum_error({"[5]", R"({"a":1})"}, R"({"a":1})");
  expect_sum_error({R"({"a":1})", R"({"a":"x"})"}, R"("x")");
  expect_sum_error({R"({"a":"x"})", R"({"a":1})"}, "1");
  expect_sum_error({R"({"a":{"b":1}})", R"({"a":2})"}, "2");
}

TEST(BuiltinReduce, error_of_a_partial_result_stays_the_error) {
  const ReduceError error = reduce_error(BuiltinReduce::sum, {"1", R"("baz")"});
  EXPECT_EQ(error.row_value(), R"({"error":"builtin_reduce_error","reason":")" + std::string(kSumReason) +
                                   R"(","caused_by":"baz"})");
  try {
    rereduce(BuiltinReduce::sum, {"17", error.row_value(), "4"});
    FAIL();
  } catch (const ReduceError& again) {
    EXPECT_EQ(again.row_value(), error.row_value());
    EXPECT_EQ(again.name(), error.name());
    EXPECT_EQ(again.reason(), error.reason());
  }
}

TEST(BuiltinReduce, computes_statistics) {
  EXPECT_EQ(stats({}), R"({"sum":0,"count":0,"min":0,"max":0,"sumsqr":0})");
  EXPECT_EQ(stats({"2"}), R"({"sum":2,"count":1,"min":2,"max":2,"sumsqr":4})");
  EXPECT_EQ(stats({"1", "10"}), R"({"sum":11,"count":2,"min":1,"max":10,"sumsqr":101})");
  EXPECT_EQ(stats({"10", "1", "-4.5"}), R"({"sum":6.5,"count":3,"min":-4.5,"max":10,"sumsqr":121.25})");
  EXPECT_EQ(rereduce(BuiltinReduce::stats, {stats({"1", "10"}), stats({"-3"})}), stats({"1", "10", "-3"}));
  EXPECT_EQ(rereduce(BuiltinReduce::stats, {stats({}), stats({"7"}), stats({})}), stats({"7"}));
}

// The values of CouchDB's stat_values_test and reduce_stats_test.
TEST(BuiltinReduce, computes_statistics_of_arrays_by_element) {
  EXPECT_EQ(stats({"[7,11,13]", "[2,3,5]"}), R"([{"sum":9,"count":2,"min":2,"max":7,"sumsqr":53},)"
                                             R"({"sum":14,"count":2,"min":3,"max":11,"sumsqr":130},)"
                                             R"({"sum":18,"count":2,"min":5,"max":13,"sumsqr":194}])");
  EXPECT_EQ(stats({"[1,2]"}), "[" + stats({"1"}) + "," + stats({"2"}) + "]");
  EXPECT_EQ(stats({"[[1],[]]", "[[5],[]]"}), "[[" + stats({"1", "5"}) + "],[]]");
  EXPECT_EQ(rereduce(BuiltinReduce::stats, {stats({"[1,2]"}), stats({"[3,4]"})}), stats({"[1,2]", "[3,4]"}));
}

TEST(BuiltinReduce, accepts_precomputed_statistics) {
  const std::string before = R"({"count":3,"x":"ignored","min":-1,"max":9,"sumsqr":100,"sum":10})";
  EXPECT_EQ(stats({before}), R"({"sum":10,"count":3,"min":-1,"max":9,"sumsqr":100})");
  EXPECT_EQ(stats({"20", before, "2"}), R"({"sum":32,"count":5,"min":-1,"max":20,"sumsqr":504})");
  EXPECT_EQ(stats({"[20]", "[" + before + "]"}), "[" + stats({"20", before}) + "]");
}

TEST(BuiltinReduce, stats_rejects_other_types) {
  const auto not_numbers = [](const std::string& value) {
    return "The _stats function requires that map values be numbers or arrays of numbers, not '" + value +
           "'";
  };
  expect_stats_error({R"("oh joy")"}, R"(non-numeric _stats input: "oh joy")");
  expect_stats_error({"[1,null]"}, "non-numeric _stats input: null");
  expect_stats_error({"1", R"("oh joy")"}, not_numbers(R"("oh joy")"));
  expect_stats_error({"1", "[1]"}, not_numbers("[1]"));
  expect_stats_error({"[1]", "1"}, not_numbers("1"));
  expect_stats_error({"[1]", "[1,2]"}, not_numbers("[1,2]"));
  expect_stats_error({"[1]", "[true]"}, not_numbers("true"));
  expect_stats_error({R"({"sum":1})"}, R"(user _stats input missing required field count ({"sum":1}))");
  expect_stats_error({"1", R"({"sum":1,"count":1,"min":"x"})"},
                     R"(non-numeric _stats input received for min: "x")");
}

TEST(BuiltinReduce, integers_stay_integers) {
  EXPECT_EQ(sum({"9223372036854775807", "9223372036854775807"}), "18446744073709551614");
  EXPECT_EQ(sum({"9007199254740993", "9007199254740993", "1"}), "18014398509481987");
  EXPECT_EQ(sum({"-170141183460469231731687303715884105728", "1"}),
            "-170141183460469231731687303715884105727");
  EXPECT_EQ(stats({"9223372036854775807"}),
            R"({"sum":9223372036854775807,"count":1,"min":9223372036854775807,"max":9223372036854775807,)"
            R"("sumsqr":85070591730234615847396907784232501249})");
  // Beyond 127 bits they become doubles.
  EXPECT_EQ(sum({"170141183460469231731687303715884105727", "1"}), "1.7014118346046923e+38");
  EXPECT_EQ(sum({"1" + std::string(50, '0')}), "1e+50");
  EXPECT_THAT(stats({"100000000000000000000"}), testing::HasSubstr(R"("sumsqr":1e+40)"));
}

TEST(BuiltinReduce, compares_integers_and_doubles_exactly) {
  EXPECT_THAT(stats({"9007199254740993", "9007199254740992.0"}),
              testing::HasSubstr(R"("min":9007199254740992,)"));
  EXPECT_THAT(stats({"9007199254740992.0", "9007199254740993"}),
              testing::HasSubstr(R"("max":9007199254740993,)"));
  EXPECT_THAT(stats({"-2", "-2.5"}), testing::HasSubstr(R"("min":-2.5,"max":-2,)"));
  EXPECT_THAT(stats({"1e150", "170141183460469231731687303715884105727", "-1e150"}),
              testing::HasSubstr(R"("min":-1e+150,"max":1e+150,)"));
}

TEST(BuiltinReduce, rejects_numbers_beyond_doubles) {
  for (const Values& values : {Values{"1e400"}, Values{"1e308", "1e308"}, Values{R"({"a":[1e400]})"}}) {
    EXPECT_EQ(reduce_error(BuiltinReduce::sum, values).reason(),
              "A number is beyond the range of double precision.");
  }
  EXPECT_EQ(reduce_error(BuiltinReduce::stats, {"1e200"}).name(), "builtin_reduce_error");
}

Values growing_objects(int rows) {
  Values values;
  for (int i = 0; i < rows; ++i) values.push_back("{\"some_member_" + std::to_string(100'000 + i) + "\":1}");
  return values;
}

TEST(BuiltinReduce, sum_must_shrink) {
  EXPECT_EQ(json::compact(reduce(BuiltinReduce::sum, growing_objects(100))).size(), 2301u);
  SumLimit limit;
  limit.context = "db/_design/ddoc/_view/v";
  EXPECT_EQ(reduce_error(BuiltinReduce::sum, growing_objects(300), limit).reason(),
            "Reduce output must shrink more rapidly: input size: 7200 output size: 6901 "
            "context: db/_design/ddoc/_view/v");
  EXPECT_EQ(sum(growing_objects(300)).size(), 6901u);
  limit.limit.threshold = 6901;
  EXPECT_EQ(reduce(BuiltinReduce::sum, growing_objects(300), limit).size(), 6901u);
  limit.limit.threshold = 6900;
  limit.limit.ratio = 1.04;
  EXPECT_EQ(reduce(BuiltinReduce::sum, growing_objects(300), limit).size(), 6901u);
  limit.limit.ratio = 2;
  limit.limit.mode = js::ReduceLimit::Mode::log;
  std::vector<std::string> messages;
  limit.log = [&](const std::string& message) { messages.push_back(message); };
  EXPECT_EQ(reduce(BuiltinReduce::sum, growing_objects(300), limit).size(), 6901u);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_TRUE(messages[0].starts_with("Reduce output must shrink more rapidly")) << messages[0];
  Values twice = growing_objects(300);
  for (const std::string& value : growing_objects(300)) twice.push_back(value);
  EXPECT_EQ(reduce(BuiltinReduce::sum, twice).size(), 6901u);
}

TEST(BuiltinReduce, sum_stops_growing_long_before_the_end) {
  const auto reducer = make_reducer(BuiltinReduce::sum);
  const Values values = growing_objects(100'000);
  std::size_t taken = 0;
  try {
    for (const std::string& value : values) {
      reducer->add(value);
      ++taken;
    }
    FAIL();
  } catch (const ReduceError&) { EXPECT_LT(taken * values[0].size(), 1'100'000u); }
}

TEST(BuiltinReduce, rejects_text_that_is_not_compact_json) {
  for (const char* bad :
       {"", "[", "[1", "[1,]", "{\"a\"}", "{\"a\":}", "{1:2}", "\"a", "nul", "x", "1 ", "[1 ]", "1,2"}) {
    EXPECT_THROW(sum({bad}), Error) << bad;
    EXPECT_THROW(stats({bad}), Error) << bad;
  }
  const std::string deepest = "[0," + std::string(999, '[') + std::string(999, ']') + "]";
  EXPECT_EQ(sum({deepest}), deepest);
  EXPECT_THROW(sum({std::string(200'000, '[')}), Error);
}

}  // namespace
}  // namespace divan::index::views
