// The cost of a poll of the heartbeats of all workers. The observer polls every half second, or more often if
// a worker has a timeout below two seconds.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include "divan/kv/embedded/temporary_store.h"
#include "divan/workers/observer.h"

namespace divan::workers {
namespace {

// One worker in ten sends a heartbeat between two polls, as with timeouts of 15 s.
void poll(benchmark::State& state) {
  const auto workers = static_cast<std::size_t>(state.range(0));
  ManualClock clock;
  kv::embedded::TemporaryStore store(&clock);
  SystemRng rng;
  Registry registry(rng);
  std::vector<WorkerRef> refs;
  store->run([&](kv::Transaction& tx) {
    for (std::size_t i = 0; i < workers; ++i)
      refs.push_back(registry.add(tx, "role", fmt::format("host-{}", i), R"({"version":"1.2.3"})"));
  });
  Observer observer(*store, registry, clock);
  std::size_t next = 0;
  for (auto _ : state) {
    state.PauseTiming();
    store->run([&](kv::Transaction& tx) {
      for (std::size_t i = 0; i < workers / 10; ++i) registry.heartbeat(tx, refs[next++ % workers]);
    });
    clock.advance(kMaxPollInterval);
    state.ResumeTiming();
    observer.poll({}, [] {});
  }
}
BENCHMARK(poll)->Arg(0)->Arg(10)->Arg(1000);

}  // namespace
}  // namespace divan::workers
