// However rows are split into partial results, and those into further ones, the reduction is the same.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "divan/base/json.h"
#include "divan/collation/collation.h"
#include "divan/collation/number.h"
#include "divan/index/views/builtin_reduce.h"

namespace divan::index::views {
namespace {

using Values = std::vector<std::string>;

std::string one_pass(const Builtin& function, const Values& values) {
  const auto reducer = make_reducer(function, SumLimit::unlimited());
  for (const std::string& value : values) reducer->add(value);
  return reducer->result();
}

// Splits the values (at random, also into empty parts), reduces each part and merges; recursively to a random
// depth.
std::string in_parts(const Builtin& function, const Values& values, int depth) {
  if (depth == 0) return one_pass(function, values);
  const auto position = rc::gen::inRange<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(values.size()) + 1);
  auto cuts =
      *rc::gen::resize(rc::kNominalSize, rc::gen::container<std::vector<std::ptrdiff_t>>(3, position));
  cuts.push_back(static_cast<std::ptrdiff_t>(values.size()));
  std::sort(cuts.begin(), cuts.end());
  const auto reducer = make_reducer(function, SumLimit::unlimited());
  std::ptrdiff_t from = 0;
  for (const std::ptrdiff_t to : cuts) {
    reducer->merge(in_parts(function, Values(values.begin() + from, values.begin() + to), depth - 1));
    from = to;
  }
  return reducer->result();
}

rc::Gen<std::string> integer() {
  return rc::gen::oneOf(
      rc::gen::map(rc::gen::inRange(-100, 100), [](int n) { return std::to_string(n); }),
      rc::gen::map(rc::gen::arbitrary<std::int64_t>(), [](std::int64_t n) { return std::to_string(n); }));
}

rc::Gen<std::string> decimal() {
  return rc::gen::map(
      rc::gen::pair(rc::gen::inRange(-100'000, 100'000), rc::gen::inRange(0, 100'000)),
      [](const auto& parts) { return std::to_string(parts.first) + "." + std::to_string(parts.second); });
}

std::string listed(const Values& values) {
  std::string text = "[";
  for (const std::string& value : values) text += (text.size() > 1 ? "," : "") + value;
  return text + "]";
}

// Two numbers, an array and an object, each of which may be missing; types cannot be mixed.
rc::Gen<std::string> object(int depth) {
  const auto array = rc::gen::map(rc::gen::container<Values>(2, integer()), listed);
  const auto nested = depth > 0 ? object(depth - 1) : rc::gen::just<std::string>("{}");
  const auto present = rc::gen::container<std::vector<bool>>(4, rc::gen::arbitrary<bool>());
  return rc::gen::map(rc::gen::tuple(present, integer(), integer(), array, nested), [](const auto& parts) {
    const auto& [is_there, a, b, c, d] = parts;
    Values members;
    if (is_there[0]) members.push_back("\"b\":" + b);
    if (is_there[1]) members.push_back("\"a\":" + a);
    if (is_there[2]) members.push_back("\"c\":" + c);
    if (is_there[3]) members.push_back("\"d\":" + d);
    std::string text = listed(members);
    text.front() = '{';
    text.back() = '}';
    return text;
  });
}

void expect_splits_alike(const Builtin& function, const Values& values) {
  RC_ASSERT(in_parts(function, values, *rc::gen::inRange(1, 4)) == one_pass(function, values));
}

RC_GTEST_PROP(BuiltinReduceSplit, count, ()) {
  expect_splits_alike(BuiltinReduce::count, *rc::gen::container<Values>(integer()));
}

RC_GTEST_PROP(BuiltinReduceSplit, greatest_and_least_values, ()) {
  const auto value =
      rc::gen::oneOf(integer(), decimal(), rc::gen::element<std::string>("null", "1", "1.0", "[]"));
  const Values values = *rc::gen::container<Values>(value);
  const auto rank = static_cast<std::size_t>(*rc::gen::inRange(1, 101));
  expect_splits_alike({BuiltinReduce::top, rank}, values);
  expect_splits_alike({BuiltinReduce::bottom, rank}, values);
}

std::string distinct_of(int from, int to) {
  const auto reducer = make_reducer(BuiltinReduce::approx_count_distinct);
  for (int n = from; n < to; ++n)
    reducer->add({.value = {}, .encoded_key = collation::encode_key(std::to_string(n))});
  return reducer->result();
}

// Overlapping ranges of up to some thousands of keys: with few registers, and with all of them.
RC_GTEST_PROP(BuiltinReduceSplit, distinct_keys, ()) {
  const auto reducer = make_reducer(BuiltinReduce::approx_count_distinct);
  int end = 0;
  for (int parts = *rc::gen::inRange(0, 5); parts > 0; --parts) {
    const int from = *rc::gen::inRange(0, end + 1);
    const int to = from + *rc::gen::element(0, 1, 30, 500, 3000);
    reducer->merge(distinct_of(from, to));
    end = std::max(end, to);
  }
  RC_ASSERT(reducer->result() == distinct_of(0, end));
}

RC_GTEST_PROP(BuiltinReduceSplit, sum_of_integers_is_exact, ()) {
  const Values values = *rc::gen::container<Values>(integer());
  collation::Int128 total = 0;
  for (const std::string& value : values) total += std::stoll(value);
  RC_ASSERT(one_pass(BuiltinReduce::sum, values) == collation::to_string(total));
  expect_splits_alike(BuiltinReduce::sum, values);
}

RC_GTEST_PROP(BuiltinReduceSplit, sum_of_arrays, ()) {
  const auto array = rc::gen::map(rc::gen::container<Values>(integer()), listed);
  const Values values = *rc::gen::container<Values>(rc::gen::oneOf(array, integer()));
  expect_splits_alike(BuiltinReduce::sum, values);
}

RC_GTEST_PROP(BuiltinReduceSplit, sum_of_objects, ()) {
  const Values values = *rc::gen::container<Values>(object(2));
  const std::string whole = one_pass(BuiltinReduce::sum, values);
  const std::string parts = in_parts(BuiltinReduce::sum, values, *rc::gen::inRange(1, 4));
  // Parsed, since the order of members depends on the merges: a single object keeps its own order.
  RC_ASSERT(json::parse(parts) == json::parse(whole));
}

RC_GTEST_PROP(BuiltinReduceSplit, stats_of_integers_are_exact, ()) {
  const Values values = *rc::gen::nonEmpty(rc::gen::container<Values>(integer()));
  collation::Int128 total = 0;
  collation::Int128 squares = 0;
  std::int64_t min = std::stoll(values[0]);
  std::int64_t max = min;
  for (const std::string& value : values) {
    const std::int64_t number = std::stoll(value);
    total += number;
    if (__builtin_add_overflow(squares, collation::Int128{number} * number, &squares))
      RC_DISCARD("beyond 127 bits");
    min = std::min(min, number);
    max = std::max(max, number);
  }
  RC_ASSERT(one_pass(BuiltinReduce::stats, values) ==
            "{\"sum\":" + collation::to_string(total) + ",\"count\":" + std::to_string(values.size()) +
                ",\"min\":" + std::to_string(min) + ",\"max\":" + std::to_string(max) +
                ",\"sumsqr\":" + collation::to_string(squares) + "}");
  expect_splits_alike(BuiltinReduce::stats, values);
}

RC_GTEST_PROP(BuiltinReduceSplit, stats_of_arrays, ()) {
  const auto small = rc::gen::map(rc::gen::inRange(-1000, 1000), [](int n) { return std::to_string(n); });
  const auto array = rc::gen::map(rc::gen::container<Values>(3, small), listed);
  const Values values = *rc::gen::nonEmpty(rc::gen::container<Values>(array));
  // The result of an empty part has no array lengths, so each part has a row.
  const auto reducer = make_reducer(BuiltinReduce::stats);
  for (const std::string& value : values) reducer->merge(one_pass(BuiltinReduce::stats, {value}));
  RC_ASSERT(reducer->result() == one_pass(BuiltinReduce::stats, values));
}

RC_GTEST_PROP(BuiltinReduceSplit, doubles_agree_within_their_precision, ()) {
  const Values values = *rc::gen::nonEmpty(rc::gen::container<Values>(rc::gen::oneOf(decimal(), integer())));
  double magnitude = 0;
  for (const std::string& value : values) magnitude += std::fabs(std::stod(value));
  const auto sum_of = [](const std::string& text) { return std::stod(text); };
  const double whole = sum_of(one_pass(BuiltinReduce::sum, values));
  const double parts = sum_of(in_parts(BuiltinReduce::sum, values, 2));
  RC_ASSERT(std::fabs(whole - parts) <= magnitude * 1e-13);

  const auto whole_stats = json::parse_object(one_pass(BuiltinReduce::stats, values));
  const auto part_stats = json::parse_object(in_parts(BuiltinReduce::stats, values, 2));
  for (const char* exact : {"count", "min", "max"}) {
    RC_ASSERT(whole_stats.at(exact).to_number<double>() == part_stats.at(exact).to_number<double>());
  }
  const double squares = whole_stats.at("sumsqr").to_number<double>();
  RC_ASSERT(std::fabs(squares - part_stats.at("sumsqr").to_number<double>()) <= squares * 1e-13);
}

}  // namespace
}  // namespace divan::index::views
