#include <benchmark/benchmark.h>

#include "divan/kv/tuple_packer.h"

namespace divan::kv::tuple {
namespace {

const Versionstamp kStamp = Versionstamp::complete("0123456789", 7);

void pack_job_key(benchmark::State& state) {
  std::string key;
  for (auto _ : state) {
    key.clear();
    Packer(key)
        .string("jobs")
        .string("pending")
        .bytes("a1b2c3d4e5f60718")
        .integer(1'700'000'000)
        .versionstamp(kStamp);
    benchmark::DoNotOptimize(key.data());
  }
  state.SetItemsProcessed(state.iterations());
}

void read_job_key(benchmark::State& state) {
  std::string key;
  Packer(key)
      .string("jobs")
      .string("pending")
      .bytes("a1b2c3d4e5f60718")
      .integer(1'700'000'000)
      .versionstamp(kStamp);
  for (auto _ : state) {
    Reader reader(key);
    const auto jobs = reader.take_string();
    const auto pending = reader.take_string();
    const auto id = reader.take_bytes();
    const auto time = reader.take_int();
    const auto stamp = reader.take_versionstamp();
    benchmark::DoNotOptimize(jobs && pending && id && time && stamp && reader.at_end());
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(pack_job_key);
BENCHMARK(read_job_key);

}  // namespace
}  // namespace divan::kv::tuple
