#include "divan/collation/collation.h"

#include <benchmark/benchmark.h>

namespace divan::collation {
namespace {

void encode(benchmark::State& state, std::string_view json) {
  std::string out;
  for (auto _ : state) {
    out.clear();
    append_key(out, json);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations());
}

void encode_plain_string(benchmark::State& state) { encode(state, R"("customer12345")"); }
void encode_name(benchmark::State& state) { encode(state, R"("Bertha Benz")"); }
void encode_umlaut(benchmark::State& state) { encode(state, "\"M\u00fcnchen Ost\""); }
void encode_integer(benchmark::State& state) { encode(state, "1700000000123"); }
void encode_decimal(benchmark::State& state) { encode(state, "-12.75"); }
void encode_string_and_number(benchmark::State& state) {
  encode(state, R"(["customer12345",1700000000123])");
}
void encode_object(benchmark::State& state) { encode(state, R"({"type":"order","at":[2024,5,17]})"); }

BENCHMARK(encode_plain_string);
BENCHMARK(encode_name);
BENCHMARK(encode_umlaut);
BENCHMARK(encode_integer);
BENCHMARK(encode_decimal);
BENCHMARK(encode_string_and_number);
BENCHMARK(encode_object);

}  // namespace
}  // namespace divan::collation
