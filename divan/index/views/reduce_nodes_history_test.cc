// Whatever changes a view's rows undergo: its reduce nodes are those of an index that is built from scratch,
// and reductions are equal to those computed row by row.
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "divan/index/views/builtin_reduce.h"
#include "divan/index/views/reduce_nodes_testing.h"

namespace divan::index::views {
namespace {

using testing::ReduceNodesHarness;

constexpr const char* kReducedViews =
    R"({"a_count":{"map":"f","reduce":"_count"},"b_sum":{"map":"f","reduce":"_sum"},"c_stats":{"map":"f","reduce":"_stats","options":{"collation":"raw"}},)"
    R"("d_js":{"map":"f","reduce":"function(keys, values, rereduce) { return rereduce ? sum(values) : values.reduce(function(a, v) { return a + 2 * v; }, keys.length); }"},)"
    R"("e_none":{"map":"f"},"f_distinct":{"map":"f","reduce":"_approx_count_distinct"},)"
    R"("g_top":{"map":"f","reduce":"_top_3"},"h_bottom":{"map":"f","reduce":"_bottom_100"},)"
    R"("i_first":{"map":"f","reduce":"_first"},"j_last":{"map":"f","reduce":"_last"}})";
constexpr std::array kNames = {"a_count",    "b_sum", "c_stats",  "d_js",    "e_none",
                               "f_distinct", "g_top", "h_bottom", "i_first", "j_last"};
constexpr int kViewCount = kNames.size();
constexpr std::array kReduced = {0, 1, 2, 3, 5, 6, 7, 8, 9};
constexpr std::array kWithNodes = {0, 1, 2, 3, 5, 6, 7};
constexpr std::array kWithoutNodes = {4, 8, 9};

Collation collation_of(int view) { return view == 2 ? Collation::raw : Collation::unicode; }

struct ModelRow {
  std::string encoded;
  std::string id;
  std::string key;
  std::string value;
  std::string terms;  // sort key of a document's rows with equal keys
  bool operator<(const ModelRow& other) const {
    return std::tie(encoded, id, terms) < std::tie(other.encoded, other.id, other.terms);
  }
};
using Documents = std::map<std::string, ReduceNodesHarness::Rows>;

// The view's rows, sorted.
std::vector<ModelRow> rows_of(const Documents& documents, int view) {
  std::vector<ModelRow> rows;
  for (const auto& [id, emitted] : documents) {
    for (const auto& [number, key, value] : emitted) {
      if (number != view) continue;
      std::string terms =
          collation::encode_key(key, Collation::raw) + collation::encode_key(value, Collation::raw);
      rows.push_back({collation::encode_key(key, collation_of(view)), id, key, value, std::move(terms)});
    }
  }
  std::stable_sort(rows.begin(), rows.end());
  return rows;
}

// The distinct values, sorted.
std::string ranked(std::span<const ModelRow> rows, bool greatest, std::size_t count) {
  std::map<std::string, std::string> values;
  for (const auto& row : rows) {
    auto& kept = values.try_emplace(collation::encode_key(row.value), row.value).first->second;
    kept = std::min(kept, row.value);
  }
  std::vector<std::string> ordered;
  for (const auto& [encoded, value] : values) ordered.push_back(value);
  if (greatest) std::reverse(ordered.begin(), ordered.end());
  if (ordered.size() > count) ordered.resize(count);
  return fmt::format("[{}]", fmt::join(ordered, ","));
}

std::string reduced(int view, std::span<const ModelRow> rows) {
  if (view == 5) {
    const auto reducer = make_reducer(BuiltinReduce::approx_count_distinct);
    for (const auto& row : rows) reducer->add({.value = {}, .encoded_key = row.encoded});
    return shown_result(BuiltinReduce::approx_count_distinct, reducer->result());
  }
  if (view == 6) return ranked(rows, true, 3);
  if (view == 7) return ranked(rows, false, 100);
  if (view == 8) return rows.front().value;
  if (view == 9) return rows.back().value;
  if (view == 3) {
    std::int64_t sum = 0;
    for (const auto& row : rows) sum += 1 + 2 * std::stoll(row.value);
    return std::to_string(sum);
  }
  const auto reducer = make_reducer(*builtin_reduce(std::array{"_count", "_sum", "_stats"}[view]));
  for (const auto& row : rows) reducer->add(row.value);
  return reducer->result();
}

std::string first_elements(const std::string& key, std::uint64_t level) {
  if (!key.starts_with('[')) return key;
  auto elements = json::parse(key).as_array();
  if (elements.size() > level) elements.resize(level);
  return json::compact(boost::json::serialize(elements));
}

// The query's response, computed from all rows.
std::string expected(const std::vector<ModelRow>& all, int view, const ViewParams& params) {
  const auto& lower = params.descending ? params.end_key : params.start_key;
  const auto& upper = params.descending ? params.start_key : params.end_key;
  std::vector<ModelRow> rows;
  for (const auto& row : all) {
    if (lower && row.encoded < collation::encode_key(*lower, collation_of(view))) continue;
    if (upper && row.encoded > collation::encode_key(*upper, collation_of(view))) continue;
    rows.push_back(row);
  }
  const std::uint64_t level = params.group ? UINT64_MAX : params.group_level.value_or(0);
  const auto group_of = [&](const ModelRow& row) -> std::string {
    if (level == 0) return {};
    return std::string(level == UINT64_MAX ? row.encoded
                                           : collation::group_prefix(row.encoded, level, collation_of(view)));
  };
  std::vector<std::string> groups;
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t end = i;
    while (end < rows.size() && group_of(rows[end]) == group_of(rows[i])) ++end;
    const auto& shown = rows[params.descending ? end - 1 : i].key;
    const std::string key = level == 0 ? "null" : level == UINT64_MAX ? shown : first_elements(shown, level);
    groups.push_back("{\"key\":" + key + ",\"value\":" + reduced(view, std::span(rows).subspan(i, end - i)) +
                     "}");
    i = end;
  }
  if (params.descending) std::reverse(groups.begin(), groups.end());
  std::string out = "{\"rows\":[";
  for (const auto& group : groups) out += (out.back() == '[' ? "" : ",") + group;
  return out + "]}";
}

// Few distinct keys, so that they are often equal, of all of CouchDB's types.
rc::Gen<std::string> any_key() {
  const auto number = rc::gen::map(rc::gen::inRange(0, 12), [](int n) { return std::to_string(n); });
  // Too long to be stored whole in keys of the store; some have a common prefix of that length.
  static const std::string text(kMaxWholeKeyBytes + 100, 'x');
  const auto long_key =
      rc::gen::element<std::string>('"' + text + '"', '"' + text + "a\"", '"' + text + "b\"",
                                    "[\"" + text + "\",1]", "[\"" + text + "\",2]", "[1,\"" + text + "\"]");
  if (*rc::gen::inRange(0, 10) == 0) return long_key;
  return rc::gen::oneOf(
      number, rc::gen::element<std::string>("null", "\"a\"", "\"b\"", "1.5", "[]", "{\"a\":1}"),
      rc::gen::map(rc::gen::container<std::vector<std::string>>(*rc::gen::inRange(1, 4), number),
                   [](const std::vector<std::string>& parts) {
                     std::string key;
                     for (const auto& part : parts) key += (key.empty() ? "[" : ",") + part;
                     return key + "]";
                   }));
}

// Values that the view's function accepts. Sums of halves are exact in any order.
rc::Gen<std::string> any_value(int view, int kind) {
  const auto integer = rc::gen::map(rc::gen::inRange(-100, 100), [](int n) { return std::to_string(n); });
  const auto half = rc::gen::map(rc::gen::inRange(1, 100), [](int n) { return std::to_string(n) + ".5"; });
  if (view == 3) return integer;
  if (view == 0 || view > 4) {
    return rc::gen::oneOf(integer, rc::gen::element<std::string>("null", "\"x\"", "{\"a\":[]}", "1.5"));
  }
  if (kind == 0) return rc::gen::oneOf(integer, half);
  if (kind == 1) {
    return rc::gen::map(rc::gen::pair(integer, half),
                        [](const auto& two) { return "[" + two.first + "," + two.second + "]"; });
  }
  if (view == 2) return integer;
  return rc::gen::map(rc::gen::pair(integer, integer), [](const auto& two) {
    return "{\"a\":" + two.first + ",\"b\":{\"c\":" + two.second + "}}";
  });
}

ReduceNodesHarness::Rows some_rows(int kind) {
  ReduceNodesHarness::Rows rows;
  const int count = *rc::gen::weightedElement<int>({{2, 0}, {5, 1}, {3, 4}});
  for (int i = 0; i < count; ++i) {
    const std::string row_key = *any_key();
    for (int view = 0; view < kViewCount; ++view) {
      if (*rc::gen::inRange(0, 4) == 0) continue;
      rows.emplace_back(view, row_key, view == 4 ? "null" : *any_value(view, kind));
    }
  }
  return rows;
}

ViewParams some_params(int view) {
  ViewParams params;
  switch (*rc::gen::inRange(0, 3)) {
    case 0: params.group = true; break;
    case 1: params.group_level = static_cast<std::uint64_t>(*rc::gen::inRange(0, 3)); break;
    default: break;
  }
  params.descending = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) params.start_key = *any_key();
  if (*rc::gen::arbitrary<bool>()) params.end_key = *any_key();
  if (params.start_key && params.end_key &&
      (collation::encode_key(*params.start_key, collation_of(view)) >
       collation::encode_key(*params.end_key, collation_of(view))) != params.descending) {
    std::swap(params.start_key, params.end_key);
  }
  return params;
}

void expect_rebuilt_nodes(ReduceNodesHarness& harness, const Documents& documents, const FanOut& fan_out) {
  ReduceNodesHarness rebuilt(kReducedViews, fan_out);
  // One by one, with all reduce nodes at the end.
  rebuilt.write(documents, 1'000'000);
  while (rebuilt.build_piece()) {}
  for (const int view : kWithNodes) {
    RC_ASSERT(rebuilt.state(view).kind == ReduceTreeState::Kind::complete);
    RC_ASSERT(harness.state(view).kind == ReduceTreeState::Kind::complete);
    RC_ASSERT(harness.nodes(view) == rebuilt.nodes(view));
  }
  for (const int view : kWithoutNodes) {
    RC_ASSERT(harness.state(view).kind == ReduceTreeState::Kind::none);
    RC_ASSERT(harness.nodes(view).empty());
  }
}

void check_history() {
  const FanOut fan_out{.row_bits = *rc::gen::inRange(1u, 3u),
                       .node_bits = *rc::gen::inRange(1u, 3u),
                       .at_once = static_cast<std::size_t>(*rc::gen::element(1, 7, 50'000)),
                       .rows_first = static_cast<std::size_t>(*rc::gen::element(1, 4, 768))};
  const int kind = *rc::gen::inRange(0, 3);
  ReduceNodesHarness harness(kReducedViews, fan_out);
  Documents documents;
  const int batches = *rc::gen::inRange(1, 9);
  for (int batch = 0; batch < batches; ++batch) {
    Documents changed;
    const int count = *rc::gen::element(1, 3, 30);
    for (int i = 0; i < count; ++i) changed[std::to_string(*rc::gen::inRange(0, 60))] = some_rows(kind);
    // Occasionally there are so many changes that all reduce nodes are rebuilt, which may be interrupted.
    const bool many = *rc::gen::inRange(0, 4) == 0;
    harness.write(changed, many ? 1'000'000 : 0);
    for (const auto& [id, rows] : changed) documents[id] = rows;
    for (int pieces = *rc::gen::inRange(0, 4); pieces > 0; --pieces) harness.build_piece();
    for (const int view : kReduced) {
      const ViewParams params = some_params(view);
      RC_ASSERT(json::parse(harness.query(kNames[view], params)) ==
                json::parse(expected(rows_of(documents, view), view, params)));
    }
  }
  while (harness.build_piece()) {}
  expect_rebuilt_nodes(harness, documents, fan_out);
  for (int i = 0; i < 20; ++i) {
    const int view = *rc::gen::elementOf(kReduced);
    const ViewParams params = some_params(view);
    RC_ASSERT(json::parse(harness.query(kNames[view], params)) ==
              json::parse(expected(rows_of(documents, view), view, params)));
  }
}

TEST(ReduceNodesHistory, NodesAndReductionsAreThoseOfTheRows) {
  const auto shared = ReduceNodesHarness::shared();  // for all histories
  EXPECT_TRUE(rc::check(check_history));
}

}  // namespace
}  // namespace divan::index::views
