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

BENCHMARK(sum_integers);
BENCHMARK(sum_decimals);
BENCHMARK(sum_arrays);
BENCHMARK(sum_objects);
BENCHMARK(stats_integers);

}  // namespace
}  // namespace divan::index::views
