// How often accepts conflict. Workers of several processes, each of which has an acceptor, accept the jobs of
// one type one by one and finish them at once. The arguments are the numbers of processes and of workers.
// docs/cluster.md has the figures.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <thread>

#include "divan/jobs/acceptor.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/fdb/temporary_store.h"

namespace divan::jobs {
namespace {

const std::vector<std::string> kTypes{"t"};

// A process.
struct Process {
  Process(kv::Database& the_store, const Clock& clock, Rng& rng)
      : store(the_store), registry(rng), queue(registry, clock, rng), acceptor(queue, store, clock) {}

  kv::Database& store;
  workers::Registry registry;
  Queue queue;
  Acceptor acceptor;
};

struct Work {
  std::vector<std::unique_ptr<Process>> processes;
  std::int64_t jobs;
  std::atomic<std::int64_t> finished = 0, finish_retries = 0;

  void add_jobs() const {
    Process& first = *processes[0];
    first.store.run([&](kv::Transaction& tx) { first.queue.set_type(tx, "t", {}); });
    for (std::int64_t added = 0; added < jobs; added += 100) {
      first.store.run([&](kv::Transaction& tx) {
        for (std::int64_t i = 0; i < 100; ++i)
          first.queue.add(tx, "t", fmt::format("job{:08}", added + i), "{}");
      });
    }
  }

  void work(Process& process) {
    while (finished < jobs) {
      for (const auto& job : process.acceptor.accept(kTypes, {.limit = 1}, MonotonicTime::max())) {
        int tries = 0;
        process.store.run([&](kv::Transaction& tx) {
          ++tries;
          jobs::finish(process.queue, tx, job.attempt());
        });
        finish_retries += tries - 1;
        if (++finished == jobs) {
          for (const auto& each : processes) each->acceptor.interrupt();
        }
      }
    }
  }

  void run(std::int64_t workers) {
    std::vector<std::thread> threads;
    for (std::int64_t i = 0; i < workers; ++i)
      threads.emplace_back([this, i] { work(*processes[static_cast<std::size_t>(i) % processes.size()]); });
    for (auto& thread : threads) thread.join();
  }
};

// The store's counters.
struct Counts {
  std::uint64_t commits = 0, conflicts = 0;
};

// `store(i)` is the store of process i; `counts` returns the counts of all processes.
template <class Store, class CountAll>
void accept_all(benchmark::State& state, std::int64_t jobs, Store&& store, CountAll&& counts) {
  const SystemClock clock;
  SystemRng rng;
  for (auto _ : state) {
    state.PauseTiming();
    Work work{.jobs = jobs};
    for (std::int64_t i = 0; i < state.range(0); ++i)
      work.processes.push_back(std::make_unique<Process>(store(i), clock, rng));
    work.add_jobs();
    const Counts before = counts();
    state.ResumeTiming();
    work.run(state.range(1));
    const auto each = [&](auto number) { return static_cast<double>(number) / static_cast<double>(jobs); };
    const Counts after = counts();
    // A finish is a commit by itself.
    state.counters["accepts_per_job"] = each(after.commits - before.commits) - 1;
    state.counters["conflicts_per_job"] = each(after.conflicts - before.conflicts);
    state.counters["of_finish"] = each(work.finish_retries.load());
  }
  state.SetItemsProcessed(jobs);
}

void AcceptsEmbedded(benchmark::State& state) {
  kv::embedded::TemporaryStore store;
  accept_all(
      state, 20'000, [&](std::int64_t) -> kv::Database& { return *store; },
      [&] {
        const auto stats = store->stats();
        return Counts{stats.commits, stats.conflicts};
      });
}

// Each process is a client of the cluster of its own; here they share FoundationDB's network thread.
void AcceptsCluster(benchmark::State& state) {
  if (!kv::fdb::test_cluster_file()) return state.SkipWithError(kv::fdb::kNoTestCluster);
  static const int stop_at_exit = std::atexit([] { kv::fdb::Client::stop(); });
  benchmark::DoNotOptimize(stop_at_exit);
  const SystemClock clock;
  SystemRng rng;
  kv::fdb::TemporaryStore store(clock);
  std::vector<std::unique_ptr<kv::fdb::FdbDatabase>> others;
  for (std::int64_t i = 1; i < state.range(0); ++i)
    others.push_back(std::make_unique<kv::fdb::FdbDatabase>(store.options(), clock, rng));
  accept_all(
      state, 4'000,
      [&](std::int64_t i) -> kv::Database& {
        return i == 0 ? *store : *others[static_cast<std::size_t>(i - 1)];
      },
      [&] {
        Counts sum{store->commits(), store->conflicts()};
        for (const auto& other : others) {
          sum.commits += other->commits();
          sum.conflicts += other->conflicts();
        }
        return sum;
      });
}

const std::vector<std::vector<std::int64_t>> kSizes{{1, 2, 4, 8}, {10, 100, 1000}};
BENCHMARK(AcceptsEmbedded)->ArgsProduct(kSizes)->Iterations(1)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(AcceptsCluster)->ArgsProduct(kSizes)->Iterations(1)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace divan::jobs
