#include "divan/index/views/builtin_reduce.h"

#include <fmt/core.h>

#include <charconv>

#include "divan/base/json.h"
#include "divan/index/views/builtin_reduce_distinct.h"
#include "divan/index/views/builtin_reduce_rank.h"
#include "divan/index/views/builtin_reduce_stats.h"
#include "divan/index/views/builtin_reduce_sum.h"

namespace divan::index::views {
namespace {

class CountReducer final : public Reducer {
 public:
  void add(const ReducedRow&) override { ++count_; }

  using Reducer::merge;
  void merge(std::string_view partial, std::uint64_t) override {
    const auto count = json::int_value(partial);
    if (!count || __builtin_add_overflow(count_, *count, &count_))
      throw internal_error("A partial result of _count is not a number.");
  }

  std::string result() const override { return std::to_string(count_); }

 private:
  std::int64_t count_ = 0;
};

class EdgeReducer final : public Reducer {
 public:
  explicit EdgeReducer(Edge edge) : edge_(edge) {}

  void add(const ReducedRow& row) override {
    if (value_ && (edge_ == Edge::first ? row.position >= position_ : row.position <= position_)) return;
    position_ = row.position;
    value_ = row.value;
  }

  using Reducer::merge;
  void merge(std::string_view, std::uint64_t) override {
    throw internal_error("_first and _last have no partial results.");
  }

  std::string result() const override { return value_.value_or("null"); }

 private:
  const Edge edge_;
  std::string position_;
  std::optional<std::string> value_;
};

constexpr std::string_view kTop = "_top_";
constexpr std::string_view kBottom = "_bottom_";

// Returns the rank as Erlang parses it: 0 if it is out of range, nullopt if `text` is not a number.
std::optional<std::size_t> parse_rank(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return std::nullopt;
  const auto value = static_cast<std::size_t>(std::max(rank, 0));
  return error == std::errc() && value <= kMaxRank ? value : 0;
}

std::optional<Builtin> ranking(BuiltinReduce function, std::string_view rank_text) {
  const std::size_t rank = parse_rank(rank_text).value_or(0);
  return rank > 0 ? std::optional(Builtin(function, rank)) : std::nullopt;
}

}  // namespace

std::optional<Builtin> builtin_reduce(std::string_view source) {
  if (source.starts_with("_count")) return BuiltinReduce::count;
  if (source.starts_with("_sum")) return BuiltinReduce::sum;
  if (source.starts_with("_stats")) return BuiltinReduce::stats;
  if (source.starts_with("_approx_count_distinct")) return BuiltinReduce::approx_count_distinct;
  if (source.starts_with(kTop)) return ranking(BuiltinReduce::top, source.substr(kTop.size()));
  if (source.starts_with(kBottom)) return ranking(BuiltinReduce::bottom, source.substr(kBottom.size()));
  if (source.starts_with("_first")) return BuiltinReduce::first;
  if (source.starts_with("_last")) return BuiltinReduce::last;
  return std::nullopt;
}

std::string invalid_builtin_reason(std::string_view source) {
  for (const auto name : {kTop, kBottom}) {
    if (!source.starts_with(name)) continue;
    return parse_rank(source.substr(name.size()))
               ? fmt::format("rank value must be between 1 and {}", kMaxRank)
               : "invalid rank reducer";
  }
  return fmt::format("`{}` is not a supported reduce function.", source);
}

std::optional<Edge> edge_of(std::string_view source) {
  const auto builtin = builtin_reduce(source);
  if (builtin == BuiltinReduce::first) return Edge::first;
  if (builtin == BuiltinReduce::last) return Edge::last;
  return std::nullopt;
}

std::unique_ptr<Reducer> make_reducer(const Builtin& builtin, const SumLimit& limit) {
  switch (builtin.function) {
    case BuiltinReduce::count: break;
    case BuiltinReduce::sum: return std::make_unique<SumReducer>(limit);
    case BuiltinReduce::stats: return std::make_unique<StatsReducer>();
    case BuiltinReduce::approx_count_distinct: return std::make_unique<DistinctReducer>();
    case BuiltinReduce::top: return std::make_unique<RankReducer>(builtin.rank, true);
    case BuiltinReduce::bottom: return std::make_unique<RankReducer>(builtin.rank, false);
    case BuiltinReduce::first: return std::make_unique<EdgeReducer>(Edge::first);
    case BuiltinReduce::last: return std::make_unique<EdgeReducer>(Edge::last);
  }
  return std::make_unique<CountReducer>();
}

std::string shown_result(const Builtin& builtin, std::string result) {
  if (builtin.function != BuiltinReduce::approx_count_distinct) return result;
  DistinctReducer reducer;
  reducer.merge(result, 0);
  return std::to_string(reducer.estimate());
}

}  // namespace divan::index::views
