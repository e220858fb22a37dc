// What reduce nodes save a reduction, and what they cost a batch of changes, over a million rows.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "divan/base/rng.h"
#include "divan/index/views/query.h"
#include "divan/index/views/view_batch.h"
#include "divan/index/views/view_kind.h"
#include "divan/kv/embedded/temporary_store.h"

namespace divan::index::views {
namespace {

constexpr int kRows = 1'000'000;
constexpr int kBatch = 2'000;

// Views with and without reduce nodes. The keys are [n % 100, n]; documents have a different order.
class Index {
 public:
  explicit Index(std::string_view reduce) {
    store_->run([&](kv::Transaction& tx) { catalog_.create(tx, "db"); });
    const std::string member = reduce.empty() ? "" : fmt::format(R"(,"reduce":"{}")", reduce);
    index_ = parse_views("_design/d", R"({"views":{"v":{"map":"f")" + member + "}}}", pool_, {});
    for (int n = 0; n < kRows; n += 20'000) write(n, n + 20'000, kRows);
    while (const auto work = index_->more_work(*store_, keys(), false))
      store_->run([&](kv::Transaction& tx) { work->write(tx, keys()); });
  }

  void write(int from, int to, std::int64_t behind) {
    ViewBatch batch(1, index_);
    for (int n = from; n < to; ++n) {
      batch.add_document(fmt::format("doc-{:08}", n * 7919 % 100'000'007));
      batch.add_row(static_cast<std::size_t>(n - from), 0, fmt::format("[{},{}]", n % 100, n),
                    std::to_string(n));
    }
    const IndexKeys keys = this->keys();
    for (std::size_t done = 0; done < batch.documents();) {
      done = batch.prepare(*store_, keys, done, {behind});
      store_->run([&](kv::Transaction& tx) {
        batch.write(tx, keys);
        write_sequence(tx, keys, kv::Versionstamp::complete("sequence10"));
      });
    }
  }

  std::string query(const ViewParams& params) {
    Query query(*store_, catalog_, "db", index_, *index_->find("v"), params);
    std::string out;
    while (query.next(out)) {}
    return out;
  }

  void drop_reduce_nodes() {
    store_->run([&](kv::Transaction& tx) { tx.clear_range(ReduceNodeKeys(keys(), 0).all()); });
  }

 private:
  IndexKeys keys() {
    return store_->run(
        [&](kv::Transaction& tx) { return IndexKeys(catalog_.open(tx, "db"), index_->signature()); });
  }

  kv::embedded::TemporaryStore store_;
  events::Bus bus_;
  SystemClock clock_;
  docs::Catalog catalog_{bus_, clock_};
  js::Pool pool_{{.binary = "divan-js"}, clock_};
  std::shared_ptr<const ViewIndex> index_;
};

Index& with_nodes() {
  static Index index("_stats");
  return index;
}

Index& without_nodes() {
  static auto index = [] {
    auto made = std::make_unique<Index>("_stats");
    made->drop_reduce_nodes();
    return made;
  }();
  return *index;
}

ViewParams random_range(SeededRng& rng) {
  auto from = rng.below(100), to = rng.below(100);
  if (from > to) std::swap(from, to);
  ViewParams params;
  params.start_key = fmt::format("[{},{}]", from, rng.below(kRows));
  params.end_key = fmt::format("[{},{}]", to + 1, rng.below(kRows));
  return params;
}

void reduce_range(benchmark::State& state, Index& index) {
  SeededRng rng{1};
  for (auto _ : state) benchmark::DoNotOptimize(index.query(random_range(rng)));
}

void reduce_groups(benchmark::State& state, Index& index) {
  ViewParams params;
  params.group_level = static_cast<std::uint64_t>(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(index.query(params));
}

void BM_StatsOfARange(benchmark::State& state) { reduce_range(state, with_nodes()); }
void BM_StatsOfARangeRowByRow(benchmark::State& state) { reduce_range(state, without_nodes()); }
void BM_StatsOfAHundredGroups(benchmark::State& state) { reduce_groups(state, with_nodes()); }
void BM_StatsOfAHundredGroupsRowByRow(benchmark::State& state) { reduce_groups(state, without_nodes()); }

void update(benchmark::State& state, std::string_view reduce) {
  Index index(reduce);
  int n = kRows;
  for (auto _ : state) {
    index.write(n, n + kBatch, 0);
    n += kBatch;
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}

// Documents added to a million others: their rows are far apart.
void BM_AddToStats(benchmark::State& state) { update(state, "_stats"); }
void BM_AddToNoReduce(benchmark::State& state) { update(state, ""); }

BENCHMARK(BM_StatsOfARange)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_StatsOfARangeRowByRow)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_StatsOfAHundredGroups)->Arg(1)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_StatsOfAHundredGroupsRowByRow)->Arg(1)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_AddToNoReduce)->Unit(benchmark::kMicrosecond)->Iterations(20);
BENCHMARK(BM_AddToStats)->Unit(benchmark::kMicrosecond)->Iterations(20);

}  // namespace
}  // namespace divan::index::views
