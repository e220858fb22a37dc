#include "divan/index/views/builtin_reduce_stats.h"

#include <fmt/format.h>

namespace divan::index::views {
namespace {

using Stats = StatsReducer::Stats;
using State = StatsReducer::State;
using States = StatsReducer::States;

constexpr std::string_view kNothing = R"({"sum":0,"count":0,"min":0,"max":0,"sumsqr":0})";

[[noreturn]] void refuse(const std::string& reason) { throw ReduceError("invalid_value", reason); }

[[noreturn]] void refuse_value(const Value& value) {
  refuse(fmt::format("The _stats function requires that map values be numbers or arrays of numbers, not '{}'",
                     to_json(value)));
}

Number required(const Members& members, std::string_view field, const Value& object) {
  for (const auto& [name, value] : members.list) {
    if (name != field) continue;
    if (const auto* number = std::get_if<Number>(&value)) return *number;
    refuse(fmt::format("non-numeric _stats input received for {}: {}", field, to_json(value)));
  }
  refuse(fmt::format("user _stats input missing required field {} ({})", field, to_json(object)));
}

Stats stats_of(const Number& number) {
  return {number, Number(collation::Int128{1}), number, number, number.squared()};
}

Stats stats_of(const Members& members, const Value& object) {
  const Number sum = required(members, "sum", object);
  const Number count = required(members, "count", object);
  const Number min = required(members, "min", object);
  const Number max = required(members, "max", object);
  return {sum, count, min, max, required(members, "sumsqr", object)};
}

State first_state(const Value& value) {
  if (const auto* number = std::get_if<Number>(&value)) return stats_of(*number);
  if (const auto* members = std::get_if<Members>(&value)) return stats_of(*members, value);
  if (const auto* array = std::get_if<Array>(&value)) {
    States states;
    for (const Value& element : *array) states.push_back(first_state(element));
    return states;
  }
  refuse("non-numeric _stats input: " + to_json(value));
}

void add_stats(Stats& total, const Stats& stats) {
  total.sum += stats.sum;
  total.count += stats.count;
  if (stats.min < total.min) total.min = stats.min;
  if (total.max < stats.max) total.max = stats.max;
  total.sumsqr += stats.sumsqr;
}

void add_value(State& state, const Value& value) {
  auto* const total = std::get_if<Stats>(&state);
  if (const auto* array = std::get_if<Array>(&value)) {
    auto* const states = std::get_if<States>(&state);
    if (!states || states->size() != array->size()) refuse_value(value);
    for (std::size_t i = 0; i < states->size(); ++i) add_value((*states)[i], (*array)[i]);
  } else if (const auto* members = std::get_if<Members>(&value)) {
    const Stats stats = stats_of(*members, value);
    if (!total) refuse_value(value);
    add_stats(*total, stats);
  } else {
    const auto* const number = std::get_if<Number>(&value);
    if (!number || !total) refuse_value(value);
    add_stats(*total, stats_of(*number));
  }
}

void append_stats(std::string& out, const Stats& stats) {
  out += R"({"sum":)";
  stats.sum.append_to(out);
  out += R"(,"count":)";
  stats.count.append_to(out);
  out += R"(,"min":)";
  stats.min.append_to(out);
  out += R"(,"max":)";
  stats.max.append_to(out);
  out += R"(,"sumsqr":)";
  stats.sumsqr.append_to(out);
  out += '}';
}

void append_state(std::string& out, const State& state) {
  if (const auto* stats = std::get_if<Stats>(&state)) return append_stats(out, *stats);
  char before = '[';
  for (const State& each : std::get<States>(state)) {
    out += before;
    append_state(out, each);
    before = ',';
  }
  out += before == '[' ? "[]" : "]";
}

}  // namespace

void StatsReducer::add(const ReducedRow& row) {
  const Value parsed = parse_value(row.value);
  if (empty_) {
    state_ = first_state(parsed);
    empty_ = false;
  } else {
    add_value(state_, parsed);
  }
}

void StatsReducer::merge(std::string_view partial, std::uint64_t) {
  if (partial != kNothing) add(ReducedRow{partial});
}

std::string StatsReducer::result() const {
  std::string out;
  if (empty_) return std::string(kNothing);
  append_state(out, state_);
  return out;
}

}  // namespace divan::index::views
