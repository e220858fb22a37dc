// What a transaction costs beyond the disk. Commits are not synced here; the read and the write that RocksDB
// makes for one are measured by themselves, to be subtracted.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include "divan/kv/embedded/rocksdb_options.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/tuple_packer.h"

namespace divan::kv::embedded {
namespace {

constexpr int kKeys = 1000;
const std::string kValue(100, 'v');

std::string key(int number) {
  std::string key;
  tuple::Packer(key).string("db").integer(1).integer(2).string(fmt::format("document-{:08}", number));
  return key;
}

class Store {
 public:
  Store() {
    store_->run([](Transaction& tx) {
      for (int i = 0; i < kKeys; ++i) tx.set(key(i), kValue);
    });
  }
  EmbeddedDatabase* operator->() { return &*store_; }

 private:
  TemporaryStore store_;
};

void begin_only(benchmark::State& state) {
  Store store;
  for (auto _ : state) benchmark::DoNotOptimize(store->begin());
}

void begin_get(benchmark::State& state) {
  Store store;
  const std::string wanted = key(500);
  for (auto _ : state) benchmark::DoNotOptimize(store->begin()->get(wanted));
}

void begin_set_get_own(benchmark::State& state) {
  Store store;
  const std::string wanted = key(500);
  for (auto _ : state) {
    const auto tx = store->begin();
    tx->set(wanted, kValue);
    benchmark::DoNotOptimize(tx->get(wanted));
  }
}

void begin_get_set_commit(benchmark::State& state) {
  Store store;
  const std::string wanted = key(500);
  for (auto _ : state) {
    const auto tx = store->begin();
    benchmark::DoNotOptimize(tx->get(wanted));
    tx->set(wanted, kValue);
    tx->commit();
  }
}

// What RocksDB does for such a transaction, with the engine's options.
void rocksdb_get_write(benchmark::State& state) {
  const TemporaryDirectory directory;
  Options ours;
  ours.directory = directory.path();
  rocksdb::DB* opened = nullptr;
  if (!rocksdb::DB::Open(rocksdb_options(ours), ours.directory, &opened).ok()) {
    return state.SkipWithError("cannot open");
  }
  const std::unique_ptr<rocksdb::DB> db(opened);
  for (int i = 0; i < kKeys; ++i) db->Put(rocksdb::WriteOptions(), key(i), kValue);
  const std::string wanted = key(500);
  std::uint64_t version = 0;
  for (auto _ : state) {
    rocksdb::PinnableSlice value;
    benchmark::DoNotOptimize(db->Get(rocksdb::ReadOptions(), db->DefaultColumnFamily(), wanted, &value));
    rocksdb::WriteBatch batch;
    batch.Put(wanted, kValue);
    ++version;
    batch.Put("\xff/version", rocksdb::Slice(reinterpret_cast<const char*>(&version), sizeof version));
    db->Write(rocksdb::WriteOptions(), &batch);
  }
}

BENCHMARK(begin_only)->Name("Transaction/begin")->MeasureProcessCPUTime();
BENCHMARK(begin_get)->Name("Transaction/begin+get")->MeasureProcessCPUTime();
BENCHMARK(begin_set_get_own)->Name("Transaction/begin+set+get_own")->MeasureProcessCPUTime();
BENCHMARK(begin_get_set_commit)->Name("Transaction/begin+get+set+commit")->MeasureProcessCPUTime();
BENCHMARK(rocksdb_get_write)->Name("Transaction/rocksdb_get+write")->MeasureProcessCPUTime();

}  // namespace
}  // namespace divan::kv::embedded
