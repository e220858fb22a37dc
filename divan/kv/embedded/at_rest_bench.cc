// The memory of an open store that does nothing: resident bytes above those of the process without it. To be
// run by itself, since memory that other benchmarks gave back would be used again.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/tuple_packer.h"

namespace divan::kv::embedded {
namespace {

constexpr int kRows = 1'000'000;
constexpr int kTogether = 2000;
constexpr double kMegabyte = 1 << 20;

double resident_bytes() {
  std::size_t pages = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

std::string key(int number) {
  std::string key;
  tuple::Packer(key).string("db").integer(1).integer(3).integer(number);
  return key;
}

void fill(const Options& options) {
  const SystemClock clock;
  SystemRng rng;
  EmbeddedDatabase store(options, clock, rng);
  for (int first = 0; first < kRows; first += kTogether) {
    store.run([&](Transaction& tx) {
      // Half of it random, as digests and names are: compression makes no blocks of nothing.
      for (int i = first; i < first + kTogether; ++i) tx.set(key(i), rng.bytes(450) + std::string(450, 'b'));
    });
  }
}

// In another process, whose memory is not in the figure.
void fill_elsewhere(const Options& options) {
  const pid_t child = fork();
  if (child == 0) {
    fill(options);
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error("The store could not be filled.");
}

void read_all(Database& store) {
  for (int first = 0; first < kRows; first += kTogether) {
    const auto tx = store.begin();
    tx->scan({key(first), key(first + kTogether)}, {},
             [](std::string_view, std::string_view) { return true; });
  }
}

void at_rest(benchmark::State& state, bool filled) {
  const TemporaryDirectory directory;
  const SystemClock clock;
  SystemRng rng;
  Options options;
  options.directory = directory.path() + "/store";
  options.durable = false;
  if (filled) fill_elsewhere(options);
  const double before = resident_bytes();
  EmbeddedDatabase store(options, clock, rng);
  if (filled) read_all(store);
  for (auto _ : state) benchmark::DoNotOptimize(store.begin());
  state.counters["resident_mb"] = (resident_bytes() - before) / kMegabyte;
  state.counters["cache_mb"] = static_cast<double>(options.cache_bytes) / kMegabyte;
}
BENCHMARK_CAPTURE(at_rest, empty, false)->Name("AtRest/empty")->Iterations(1);
BENCHMARK_CAPTURE(at_rest, million_rows, true)->Name("AtRest/million_rows")->Iterations(1);

}  // namespace
}  // namespace divan::kv::embedded
