#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "divan/base/error_testing.h"
#include "divan/base/rng.h"
#include "divan/index/views/reduce_nodes_testing.h"

namespace divan::index::views {
namespace {

using ::testing::HasSubstr;
using testing::ReduceNodesHarness;

constexpr const char* kStats = R"({"v":{"map":"f","reduce":"_stats"}})";

std::map<std::string, ReduceNodesHarness::Rows> numbers(int from, int to) {
  std::map<std::string, ReduceNodesHarness::Rows> documents;
  for (int i = from; i < to; ++i)
    documents[fmt::format("doc-{:06}", i)] = {{0, std::to_string(i), std::to_string(i)}};
  return documents;
}

ViewParams range(int from, int to) {
  ViewParams params;
  params.start_key = std::to_string(from);
  params.end_key = std::to_string(to);
  return params;
}

// The estimate of reduce_nodes.h: entries at both ends of each level.
int most_reads(double rows, const FanOut& fan_out) {
  const double above = rows / static_cast<double>(1 << fan_out.row_bits);
  const double levels = 1 + std::max(0.0, std::log2(above) / fan_out.node_bits);
  // A reduce node is rarely larger than twice the average, and almost never larger than five times.
  return static_cast<int>(5 * (2 * (1 << fan_out.row_bits) + 2 * levels * (1 << fan_out.node_bits)));
}

TEST(ReduceNodes, AReductionReadsALogarithmicNumberOfRows) {
  constexpr int kRows = 20'000;
  for (const FanOut fan_out : {FanOut{}, FanOut{.row_bits = 2, .node_bits = 2}}) {
    ReduceNodesHarness harness(kStats, fan_out);
    for (int i = 0; i < kRows; i += 5'000) harness.write(numbers(i, i + 5'000), kRows);
    while (harness.build_piece()) {}
    SeededRng rng{1};
    std::int64_t reads = 0;
    constexpr int kQueries = 200;
    for (int i = 0; i < kQueries; ++i) {
      auto from = static_cast<std::int64_t>(rng.below(kRows)),
           to = static_cast<std::int64_t>(rng.below(kRows));
      if (from > to) std::swap(from, to);
      harness.store_counting.rows_read = 0;
      const std::int64_t count = to - from + 1;
      EXPECT_THAT(harness.query("v", range(static_cast<int>(from), static_cast<int>(to))),
                  HasSubstr(fmt::format(R"("sum":{},"count":{},"min":{},"max":{})", (from + to) * count / 2,
                                        count, from, to)));
      EXPECT_LE(harness.store_counting.rows_read, most_reads(kRows, fan_out));
      reads += harness.store_counting.rows_read;
    }
    EXPECT_LE(reads / kQueries, most_reads(kRows, fan_out) / 3);
    RecordProperty(fmt::format("reads_{}", 1 << fan_out.row_bits), static_cast<int>(reads / kQueries));
  }
}

TEST(ReduceNodes, DistinctKeysAreCountedFromALogarithmicNumberOfRows) {
  constexpr int kRows = 20'000;
  ReduceNodesHarness harness(R"({"v":{"map":"f","reduce":"_approx_count_distinct"}})", {});
  for (int i = 0; i < kRows; i += 5'000) harness.write(numbers(i, i + 5'000), kRows);
  while (harness.build_piece()) {}
  for (const auto& [key, value] : harness.nodes(0)) EXPECT_LE(value.size(), 2'060u);
  SeededRng rng{1};
  for (int i = 0; i < 50; ++i) {
    const int from = static_cast<int>(rng.below(kRows / 2));
    const int count = static_cast<int>(rng.below(kRows / 2));
    harness.store_counting.rows_read = 0;
    const auto answer = json::parse(harness.query("v", range(from, from + count - 1)));
    if (count == 0) continue;
    const auto shown = answer.at("rows").at(0).at("value").to_number<double>();
    EXPECT_NEAR(shown, count, std::max(1.0, 0.08 * count));
    EXPECT_LE(harness.store_counting.rows_read, most_reads(kRows, {}));
  }
}

TEST(ReduceNodes, TheFirstAndTheLastRowAreLookedUp) {
  ReduceNodesHarness harness(R"({"a":{"map":"f","reduce":"_first"},"z":{"map":"f","reduce":"_last"}})", {});
  std::map<std::string, ReduceNodesHarness::Rows> documents;
  constexpr int kRows = 4'000;
  for (int i = 0; i < kRows; ++i) {
    const std::string key = fmt::format("[{},{}]", i % 4, i / 4);
    documents[std::to_string(i)] = {{0, key, std::to_string(i)}, {1, key, std::to_string(i)}};
  }
  harness.write(documents);
  EXPECT_FALSE(harness.build_piece());
  EXPECT_TRUE(harness.nodes(0).empty() && harness.nodes(1).empty());
  ViewParams all;
  ViewParams groups;
  groups.group_level = 1;
  for (const bool descending : {false, true}) {
    all.descending = groups.descending = descending;
    harness.store_counting.rows_read = 0;
    EXPECT_EQ(harness.query("a", all), R"({"rows":[{"key":null,"value":0}]})");
    EXPECT_EQ(harness.query("z", all), R"({"rows":[{"key":null,"value":3999}]})");
    EXPECT_LE(harness.store_counting.rows_read, 10);
    harness.store_counting.rows_read = 0;
    std::vector<std::string> firsts, lasts;
    for (int i = 0; i < 4; ++i) {
      const int group = descending ? 3 - i : i;
      firsts.push_back(fmt::format(R"({{"key":[{}],"value":{}}})", group, group));
      lasts.push_back(fmt::format(R"({{"key":[{}],"value":{}}})", group, 3996 + group));
    }
    EXPECT_EQ(harness.query("a", groups), fmt::format(R"({{"rows":[{}]}})", fmt::join(firsts, ",")));
    EXPECT_EQ(harness.query("z", groups), fmt::format(R"({{"rows":[{}]}})", fmt::join(lasts, ",")));
    EXPECT_LE(harness.store_counting.rows_read, 2 * 4 * 100);
  }
}

// Of large groups only what their reduce nodes do not cover is read, of small ones each row once.
TEST(ReduceNodes, GroupsReadNoMoreThanTheirRows) {
  ReduceNodesHarness harness(R"({"v":{"map":"f","reduce":"_count"}})", {});
  constexpr int kRows = 20'000;
  std::map<std::string, ReduceNodesHarness::Rows> documents;
  for (int i = 0; i < kRows; ++i)
    documents[std::to_string(i)] = {{0, fmt::format("[{},{}]", i % 4, i % 5'000), "null"}};
  harness.write(documents, kRows);
  while (harness.build_piece()) {}
  for (const bool descending : {false, true}) {
    ViewParams params;
    params.descending = descending;
    params.group_level = 1;
    harness.store_counting.rows_read = 0;
    const std::string four = harness.query("v", params);
    EXPECT_THAT(four, HasSubstr(R"({"key":[0],"value":5000})"));
    EXPECT_THAT(four, HasSubstr(R"({"key":[3],"value":5000})"));
    EXPECT_LE(harness.store_counting.rows_read, 4 * (most_reads(kRows, {}) / 2 + 800));
    params.group_level = 2;
    harness.store_counting.rows_read = harness.store_counting.scans = 0;
    harness.query("v", params);
    EXPECT_LE(harness.store_counting.rows_read, kRows + 100);
    EXPECT_LE(harness.store_counting.scans, 10);
  }
}

TEST(ReduceNodes, AChangeReadsAndWritesLittle) {
  constexpr int kRows = 20'000;
  ReduceNodesHarness harness(kStats, {});
  harness.write(numbers(0, kRows), kRows);
  while (harness.build_piece()) {}
  int reads = 0;
  constexpr int kChanges = 50;
  for (int i = 0; i < kChanges; ++i) {
    const int n = i * 397;
    harness.store_counting.rows_read = 0;
    harness.write({{fmt::format("doc-{:06}", n), {{0, std::to_string(n), std::to_string(-1 - i)}}}});
    reads += harness.store_counting.rows_read;
    EXPECT_LE(harness.written_bytes, 1000u);
  }
  EXPECT_LE(reads / kChanges, 2 * most_reads(kRows, {}) / 3);
  RecordProperty("reads", reads / kChanges);
  EXPECT_THAT(harness.query("v", {}), HasSubstr(R"("min":-50,"max":19999)"));
}

// Changing a value does not change the number of rows.
TEST(ReduceNodes, UnchangedReduceNodesAreNotWritten) {
  ReduceNodesHarness harness(R"({"v":{"map":"f","reduce":"_count"}})", {.row_bits = 1, .node_bits = 1});
  harness.write(numbers(0, 100));
  for (int n = 0; n < 100; ++n) {
    harness.write({{fmt::format("doc-{:06}", n), {{0, std::to_string(n), "-1"}}}});
    EXPECT_LE(harness.written_bytes, 200u);
  }
}

TEST(ReduceNodes, UnchangedRowsOfADocumentAreNotWritten) {
  ReduceNodesHarness harness(R"({"v":{"map":"f","reduce":"_sum"},"w":{"map":"f"}})",
                             {.row_bits = 1, .node_bits = 1});
  const std::string large = '"' + std::string(200'000, 'x') + '"';
  const ReduceNodesHarness::Rows rows = {{0, "1", "1"}, {0, "1", "2"}, {1, "[2]", large}};
  harness.write({{"a", rows}, {"b", rows}, {"c", rows}});
  EXPECT_GT(harness.written_bytes, 600'000u);
  EXPECT_EQ(harness.state(0).kind, ReduceTreeState::Kind::complete);  // at once, since the rows are few
  harness.write({{"a", rows}, {"c", rows}});
  EXPECT_EQ(harness.written_bytes, 0u);
  // The changed row, and the reduce nodes above it.
  harness.write({{"a", rows}, {"b", {{0, "1", "1"}, {0, "1", "3"}, {1, "[2]", large}}}});
  EXPECT_GT(harness.written_bytes, 0u);
  EXPECT_LT(harness.written_bytes, 2000u);
  EXPECT_EQ(harness.query("v", {}), R"({"rows":[{"key":null,"value":10}]})");
  // Only the last chunk differs.
  std::string changed = large;
  changed[199'999] = 'y';
  harness.write({{"c", {{0, "1", "1"}, {0, "1", "2"}, {1, "[2]", changed}}}});
  EXPECT_GT(harness.written_bytes, 200'000u);
  EXPECT_LT(harness.written_bytes, 220'000u);
}

// The reduce nodes above it have no value, and a query finds the error in the row's own range.
TEST(ReduceNodes, RowsThatCannotBeReducedFailTheirOwnRangesOnly) {
  const FanOut small{.row_bits = 2, .node_bits = 1};
  ReduceNodesHarness harness(
      R"({"js":{"map":"f","reduce":"function(k, v, r) { v.forEach(function(n) { if (n == 'bad') throw 'no'; }); return r ? sum(v) : v.length; }"},)"
      R"("stats":{"map":"f","reduce":"_stats"},"sum":{"map":"f","reduce":"_sum"}})",
      small);
  const auto write = [&](int n, const std::string& value) {
    const std::string key = std::to_string(n);
    harness.write({{key, {{0, key, value}, {1, key, value}, {2, key, value}}}});
  };
  for (int n = 0; n < 100; ++n) write(n, n == 50 ? R"("bad")" : "1");
  EXPECT_EQ(harness.query("js", {}), R"({"rows":[{"key":null,"value":null}]})");
  EXPECT_THAT(error_of([&] { harness.query("stats", {}); }), HasSubstr("invalid_value"));
  EXPECT_THAT(harness.query("sum", {}), HasSubstr(R"("value":{"error":"builtin_reduce_error")"));
  for (const int from : {0, 51}) {
    EXPECT_THAT(harness.query("js", range(from, from + 48)), HasSubstr(R"("value":49)"));
    EXPECT_THAT(harness.query("stats", range(from, from + 48)), HasSubstr(R"("count":49)"));
    EXPECT_THAT(harness.query("sum", range(from, from + 48)), HasSubstr(R"("value":49)"));
  }
  write(50, "1");
  EXPECT_THAT(harness.query("js", {}), HasSubstr(R"("value":100)"));
  EXPECT_THAT(harness.query("stats", {}), HasSubstr(R"("count":100)"));
  EXPECT_THAT(harness.query("sum", {}), HasSubstr(R"("value":100)"));
  for (int view = 0; view < 3; ++view) {
    for (const auto& [key, value] : harness.nodes(view)) EXPECT_TRUE(decode_reduce_node(value));
  }
}

constexpr const char* kJoin = R"({"all":{"map":"f","reduce":"function(k, v, r) { return v.join(''); }"}})";

// Sets a limit of reductions for one test.
struct Limited {
  explicit Limited(const js::ReduceLimit& limit) { ReduceNodesHarness::limit_reductions(limit); }
  ~Limited() { ReduceNodesHarness::limit_reductions({}); }

  const std::shared_ptr<ReduceNodesHarness::Shared> shared = ReduceNodesHarness::shared();
};
constexpr js::ReduceLimit kUnlimited{.mode = js::ReduceLimit::Mode::off};

TEST(ReduceNodes, ReductionsThatGrowAreNotKept) {
  const Limited limited(kUnlimited);
  ReduceNodesHarness harness(kJoin, {.row_bits = 2, .node_bits = 1});
  std::map<std::string, ReduceNodesHarness::Rows> documents;
  for (int n = 0; n < 40; ++n)
    documents[fmt::format("{:02}", n)] = {{0, std::to_string(n), '"' + std::string(3000, 'x') + '"'}};
  harness.write(documents);
  std::size_t without = 0;
  for (const auto& [key, value] : harness.nodes(0)) {
    EXPECT_LE(value.size(), kMaxReduceNodeBytes + 10);
    if (value.empty()) ++without;
  }
  EXPECT_GT(without, 0u);
  EXPECT_EQ(harness.query("all", {}).size(),
            120'000 + std::string(R"({"rows":[{"key":null,"value":""}]})").size());
}

// The error replaces the group's row; other groups have their values, and the rows exist.
TEST(ReduceNodes, ReductionsThatDoNotShrinkAreErrorsOfTheirGroups) {
  ReduceNodesHarness harness(kJoin, {.row_bits = 2, .node_bits = 1, .rows_first = 10});
  std::map<std::string, ReduceNodesHarness::Rows> documents;
  for (int n = 0; n < 60; ++n) {
    const std::size_t size = n / 20 == 1 ? 400 : 20;
    documents[fmt::format("{:02}", n)] = {
        {0, fmt::format("[{},{}]", n / 20, n), '"' + std::string(size, 'x') + '"'}};
  }
  harness.write(documents);
  ASSERT_EQ(harness.state(0).kind, ReduceTreeState::Kind::complete);
  constexpr const char* kError =
      R"({"key":null,"error":"reduce_overflow_error","reason":"Reduce output must shrink more rapidly: )";
  EXPECT_THAT(harness.query("all", {}), HasSubstr(kError));
  ViewParams groups;
  groups.group_level = 1;
  for (const bool descending : {false, true}) {
    groups.descending = descending;
    const auto rows = json::parse(harness.query("all", groups)).at("rows").as_array();
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[0].at("value").as_string().size(), 400u);
    EXPECT_TRUE(rows[1].at("key").is_null());
    EXPECT_EQ(rows[1].at("error"), "reduce_overflow_error");
    EXPECT_EQ(rows[2].at("value").as_string().size(), 400u);
  }
  ViewParams rows;
  rows.reduce = false;
  EXPECT_EQ(json::parse(harness.query("all", rows)).at("rows").as_array().size(), 60u);
  // The limit leaves no trace in the index.
  const Limited limited(kUnlimited);
  EXPECT_EQ(harness.query("all", {}).size(),
            8'800 + std::string(R"({"rows":[{"key":null,"value":""}]})").size());
}

// A group that has failed is not read to its end.
TEST(ReduceNodes, AReductionThatFailedReadsNoFurther) {
  ReduceNodesHarness harness(
      R"({"all":{"map":"f","reduce":"function(k, v, r) { return v.join(''); }"},"sum":{"map":"f","reduce":"_sum"}})",
      {});
  std::map<std::string, ReduceNodesHarness::Rows> documents;
  constexpr int kRows = 12'000;
  const std::string text = '"' + std::string(1'000, 'x') + '"';
  for (int n = 0; n < kRows; ++n)
    documents[fmt::format("{:05}", n)] = {{0, std::to_string(n), text}, {1, std::to_string(n), text}};
  harness.write(documents, kRows);
  harness.store_counting.rows_read = 0;
  EXPECT_THAT(harness.query("all", {}), HasSubstr("reduce_overflow_error"));
  EXPECT_THAT(harness.query("sum", {}), HasSubstr("builtin_reduce_error"));
  EXPECT_LE(harness.store_counting.rows_read, 2 * 5'000);
}

// The same for each of many groups, whether their rows have reduce nodes or not.
TEST(ReduceNodes, GroupsThatFailedAreReadNoFurther) {
  constexpr int kGroups = 5;
  constexpr int kRows = 3'000;
  for (const bool nodes : {true, false}) {
    SCOPED_TRACE(nodes);
    ReduceNodesHarness harness(
        R"({"all":{"map":"f","reduce":"function(k, v, r) { return v.join(''); }"},"sum":{"map":"f","reduce":"_sum"}})",
        {});
    const std::string text = '"' + std::string(4'000, 'x') + '"';
    for (int group = 0; group < kGroups; ++group) {
      std::map<std::string, ReduceNodesHarness::Rows> documents;
      for (int n = 0; n < kRows; ++n) {
        const std::string key = fmt::format("[{},{}]", group, n);
        documents[fmt::format("{}-{:05}", group, n)] = {{0, key, text}, {1, key, text}};
      }
      harness.write(documents, nodes ? 0 : kGroups * kRows);
    }
    if (!nodes) harness.drop_reduce_nodes();
    ViewParams params;
    params.group_level = 1;
    for (const bool descending : {false, true}) {
      params.descending = descending;
      for (const auto& [view, error] :
           {std::pair{"all", "reduce_overflow_error"}, std::pair{"sum", "builtin_reduce_error"}}) {
        harness.store_counting.rows_read = 0;
        const auto rows = json::parse(harness.query(view, params)).at("rows").as_array();
        ASSERT_EQ(rows.size(), std::size_t{kGroups});
        for (int i = 0; i < kGroups; ++i) {
          const int group = descending ? kGroups - 1 - i : i;
          EXPECT_EQ(json::compact(boost::json::serialize(rows[static_cast<std::size_t>(i)].at("key"))),
                    view == std::string_view("sum") ? fmt::format("[{}]", group) : "null");
          EXPECT_THAT(boost::json::serialize(rows[static_cast<std::size_t>(i)]), HasSubstr(error));
        }
        EXPECT_LE(harness.store_counting.rows_read, kGroups * kRows / 2);
      }
    }
  }
}

TEST(ReduceNodes, SumHasItsLimit) {
  ReduceNodesHarness harness(R"({"sum":{"map":"f","reduce":"_sum"}})", {.row_bits = 2, .node_bits = 1});
  std::map<std::string, ReduceNodesHarness::Rows> documents;
  const auto object = [](int first) {
    std::string text = "{";
    for (int i = 0; i < 500; ++i) text += fmt::format("{}\"member-{}\":1", i ? "," : "", first + i);
    return text + "}";
  };
  for (int n = 0; n < 40; ++n) {
    documents[fmt::format("{:02}", n)] = {{0, std::to_string(n), object(n < 20 ? 0 : 500 * n)}};
  }
  harness.write(documents);
  // The sum of twenty equal objects shrinks, and so does that of two; that of twenty with different members
  // does not.
  EXPECT_THAT(harness.query("sum", range(0, 19)), HasSubstr(R"("member-499":20)"));
  // Whichever reduce nodes are used, the limit measures the rows.
  for (int from = 0; from < 19; ++from) {
    for (int to = from + 1; to < 20; ++to) {
      EXPECT_THAT(harness.query("sum", range(from, to)),
                  HasSubstr(fmt::format(R"("member-499":{})", to - from + 1)));
    }
  }
  EXPECT_THAT(harness.query("sum", {}), HasSubstr("Reduce output must shrink more rapidly"));
  harness.drop_reduce_nodes();
  EXPECT_THAT(harness.query("sum", range(0, 19)), HasSubstr(R"("member-499":20)"));
  EXPECT_THAT(harness.query("sum", {}), HasSubstr("Reduce output must shrink more rapidly"));
  const Limited limited(kUnlimited);
  EXPECT_THAT(harness.query("sum", {}), HasSubstr(R"("member-499":20)"));
}

TEST(ReduceNodes, AFunctionThatNeverEndsHasNoReduceNodesAndFailsOnlyItsOwnQueries) {
  const js::Limits hurried{.invocation = std::chrono::milliseconds(50)};
  ReduceNodesHarness harness(
      R"({"good":{"map":"f","reduce":"_count"},"loop":{"map":"f","reduce":"function() { for (;;); }"}})",
      {.row_bits = 1, .node_bits = 1}, hurried);
  std::map<std::string, ReduceNodesHarness::Rows> documents;
  for (int n = 0; n < 20; ++n) documents[std::to_string(n)] = {{0, "1", "1"}, {1, "1", "1"}};
  for (const std::int64_t behind : {0, 1'000'000}) {
    harness.write(documents, behind);
    while (harness.build_piece()) {}
    EXPECT_EQ(harness.state(0).kind, ReduceTreeState::Kind::complete);
    EXPECT_EQ(harness.state(1).kind, ReduceTreeState::Kind::disabled);
    EXPECT_TRUE(harness.nodes(1).empty());
    EXPECT_EQ(harness.query("good", {}), R"({"rows":[{"key":null,"value":20}]})");
    EXPECT_THAT(error_of([&] { harness.query("loop", {}); }), HasSubstr("reduce_function_failed"));
    harness.drop_reduce_nodes();
  }
}

// An interrupted build continues where it ended, and begins again if rows have changed meanwhile.
TEST(ReduceNodes, ReduceNodesOfManyRowsAreBuiltInPieces) {
  ReduceNodesHarness harness(kStats, {.at_once = 500});
  EXPECT_FALSE(harness.build_piece(true));
  harness.write(numbers(0, 5'000), 5'000);
  EXPECT_FALSE(harness.build_piece(true));
  EXPECT_TRUE(harness.build_piece());
  EXPECT_EQ(harness.state(0).kind, ReduceTreeState::Kind::building);
  const auto first = harness.nodes(0);
  EXPECT_TRUE(harness.build_piece(true));
  EXPECT_GT(harness.nodes(0).size(), first.size());
  EXPECT_THAT(harness.query("v", range(10, 4'999)), HasSubstr(R"("count":4990)"));
  harness.write(numbers(5'000, 5'001));
  EXPECT_EQ(harness.state(0).kind, ReduceTreeState::Kind::none);
  EXPECT_TRUE(harness.nodes(0).empty());
  int pieces = 0;
  while (harness.build_piece()) ++pieces;
  EXPECT_GE(pieces, 9);
  EXPECT_EQ(harness.state(0).kind, ReduceTreeState::Kind::complete);
  EXPECT_THAT(harness.query("v", range(10, 4'999)), HasSubstr(R"("count":4990)"));
}

}  // namespace
}  // namespace divan::index::views
