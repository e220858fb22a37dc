// Throughput of the pool in documents per second. Run with --benchmark_filter=Js.
#include "divan/js/pool.h"

#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <sys/resource.h>

#include <filesystem>
#include <optional>
#include <thread>

#include "divan/base/json.h"

namespace divan::js {
namespace {

// divan-js is in the directory of this program.
PoolOptions bench_options(std::size_t processes) {
  PoolOptions options;
  options.binary = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "divan-js";
  options.processes = processes;
  return options;
}

// About 1 KB.
std::string document(int n) {
  std::string text;
  json::Writer out(text);
  out.begin_object().key("_id").string(fmt::format("person-{:06}", n));
  out.key("_rev").string("1-967a00dff5e02add41819138abb3284d");
  out.key("type").string("person").key("n").number(n).key("name").string("Jane Example");
  out.key("tags").begin_array().string("a").string("bb").string("ccc").end_array();
  out.key("orders").begin_array();
  for (int i = 0; i < 8; ++i) {
    out.begin_object().key("id").number(i).key("sku").string(fmt::format("SKU-{:04}", 17 * i));
    out.key("price").raw("19.99").key("note").string("to be left at the door").end_object();
  }
  out.end_array().key("text").string(std::string(280, 'x')).end_object();
  return text;
}

Program program(std::size_t functions) {
  Program program{std::to_string(functions), {}};
  for (std::size_t i = 0; i < functions; ++i) {
    program.functions.push_back({"f", "function (doc) { emit(doc.type, doc.n); }"});
  }
  return program;
}

// The processor time of ended children in microseconds, which varies less than real time on a busy machine.
double child_time() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto microseconds = [](const timeval& time) {
    return 1e6 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec);
  };
  return microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
}

// Arguments: batch size, processes (and as many calling threads), functions.
void BM_JsMap(benchmark::State& state) {
  const auto batch_size = static_cast<std::size_t>(state.range(0));
  const auto processes = static_cast<std::size_t>(state.range(1));
  const auto functions = program(static_cast<std::size_t>(state.range(2)));
  std::vector<std::string> texts;
  for (int i = 0; i < 1000; ++i) texts.push_back(document(i));
  const std::vector<std::string_view> documents(texts.begin(), texts.end());
  const SystemClock clock;
  const auto time_before = child_time();
  std::optional<Pool> pool(std::in_place, bench_options(processes), clock);
  const auto map_thousand = [&] {
    for (std::size_t first = 0; first < documents.size(); first += batch_size) {
      const auto count = std::min(batch_size, documents.size() - first);
      const auto result = pool->map(functions, std::span(documents).subspan(first, count));
      if (result.documents() != count || result.emitted(0, 0).size() != 1) std::abort();
    }
  };
  for (int i = 0; i < 5; ++i) map_thousand();
  for (auto unused : state) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < processes; ++i) threads.emplace_back(map_thousand);
    for (auto& thread : threads) thread.join();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(processes * documents.size()));
  const auto done = static_cast<double>(pool->stats().documents);
  pool.reset();
  state.counters["child_us/doc"] = (child_time() - time_before) / done;
}
BENCHMARK(BM_JsMap)
    ->ArgNames({"batch", "processes", "functions"})
    ->Args({100, 1, 1})
    ->Args({1, 1, 1})
    ->Args({1000, 1, 1})
    ->Args({100, 2, 1})
    ->Args({100, 1, 5})
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// 100 groups of 100 rows per request.
void BM_JsReduce(benchmark::State& state) {
  std::vector<ReduceRow> rows;
  for (int i = 0; i < 100; ++i) rows.push_back({"\"person\"", "person-000001", "12345"});
  const std::vector<ReduceGroup> groups(100, rows);
  const SystemClock clock;
  Pool pool(bench_options(1), clock);
  const Function function{"r", "function (keys, values, rereduce) { return sum(values); }"};
  for (auto unused : state) {
    if (pool.reduce(function, false, groups).size() != 100) std::abort();
  }
  state.SetItemsProcessed(state.iterations() * 10'000);
}
BENCHMARK(BM_JsReduce)->UseRealTime()->Unit(benchmark::kMillisecond);

void BM_JsStartProcess(benchmark::State& state) {
  const auto options = bench_options(1);
  for (auto unused : state) Process(options.binary, options.memory);
}
BENCHMARK(BM_JsStartProcess)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace divan::js
