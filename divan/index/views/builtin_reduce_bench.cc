#include "divan/index/views/builtin_reduce.h"

#include <benchmark/benchmark.h>

namespace divan::index::views {
namespace {

void reduce(benchmark::State& state, BuiltinReduce function, std::string_view value) {
  const auto reducer = make_reducer(function);
  for (auto _ : state) reducer->add(value);
  benchmark::DoNotOptimize(reducer->result());
  state.SetItemsProcessed(state.iterations());
}

void sum_integers(benchmark::State& state) { reduce(state, BuiltinReduce::sum, "12345"); }
void sum_decimals(benchmark::State& state) { reduce(state, BuiltinReduce::sum, "12.75"); }
void sum_arrays(benchmark::State& state) { reduce(state, BuiltinReduce::sum, "[1,20,300]"); }
void sum_objects(benchmark::State& state) { reduce(state, BuiltinReduce::sum, R"({"paid":12,"open":7})"); }
void stats_integers(benchmark::State& state) { reduce(state, BuiltinReduce::stats, "12345"); }

void top_ten_integers(benchmark::State& state) {
  const auto reducer = make_reducer({BuiltinReduce::top, 10});
  std::uint64_t n = 0;
  for (auto _ : state) reducer->add(std::to_string(n = n * 6364136223846793005u + 1442695040888963407u));
  state.SetItemsProcessed(state.iterations());
}

// Partial results of 100,000 keys, and what a query shows of them.
std::string distinct_keys() {
  const auto reducer = make_reducer(BuiltinReduce::approx_count_distinct);
  for (int n = 0; n < 100'000; ++n) reducer->add({.value = {}, .encoded_key = std::to_string(n)});
  return reducer->result();
}
void add_distinct(benchmark::State& state) {
  const auto reducer = make_reducer(BuiltinReduce::approx_count_distinct);
  std::uint64_t n = 0;
  for (auto _ : state) reducer->add({.value = {}, .encoded_key = std::to_string(++n)});
  state.SetItemsProcessed(state.iterations());
}
void merge_distinct(benchmark::State& state) {
  const auto reducer = make_reducer(BuiltinReduce::approx_count_distinct);
  const std::string partial = distinct_keys();
  for (auto _ : state) reducer->merge(partial);
}
void show_distinct(benchmark::State& state) {
  const std::string partial = distinct_keys();
  for (auto _ : state) benchmark::DoNotOptimize(shown_result(BuiltinReduce::approx_count_distinct, partial));
}

BENCHMARK(sum_integers);
BENCHMARK(sum_decimals);
BENCHMARK(sum_arrays);
BENCHMARK(sum_objects);
BENCHMARK(stats_integers);
BENCHMARK(top_ten_integers);
BENCHMARK(add_distinct);
BENCHMARK(merge_distinct);
BENCHMARK(show_distinct);

}  // namespace
}  // namespace divan::index::views
