// Group commit: what many clients at once make of the disk's syncs. Real files and real syncs; the syncs are
// counted where RocksDB asks the file system for them.
#include <benchmark/benchmark.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <atomic>
#include <thread>

#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/tuple_packer.h"

namespace divan::kv::embedded {
namespace {

constexpr std::uint64_t kDocuments = 100'000;

struct LogCounts {
  std::atomic<std::uint64_t> syncs = 0;
  std::atomic<std::uint64_t> bytes = 0;
};

class CountedLog final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  CountedLog(std::unique_ptr<rocksdb::FSWritableFile> file, LogCounts& counts)
      : FSWritableFileOwnerWrapper(std::move(file)), counts_(counts) {}

  using FSWritableFileOwnerWrapper::Append;
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
    counts_.bytes += data.size();
    return FSWritableFileOwnerWrapper::Append(data, options, debug);
  }
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
    ++counts_.syncs;
    return FSWritableFileOwnerWrapper::Sync(options, debug);
  }
  rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
    ++counts_.syncs;
    return FSWritableFileOwnerWrapper::Fsync(options, debug);
  }

 private:
  LogCounts& counts_;
};

// The machine's files, the write-ahead logs counted.
class CountingFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit CountingFileSystem(LogCounts& counts)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), counts_(counts) {}

  const char* Name() const override { return "divan.counting"; }
  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    auto status = FileSystemWrapper::NewWritableFile(name, options, file, debug);
    if (status.ok() && name.ends_with(".log"))
      *file = std::make_unique<CountedLog>(std::move(*file), counts_);
    return status;
  }

 private:
  LogCounts& counts_;
};

std::string key(std::string_view section, std::uint64_t number) {
  std::string key;
  tuple::Packer(key).string("db").integer(1).string(section).integer(static_cast<std::int64_t>(number));
  return key;
}

// Like the update of a document: one row is read, it, a body and a row of the changes are written.
void update(Database& store, Rng& rng) {
  static const std::string body(900, 'b');
  static const std::string leaf(40, 'l');
  const std::uint64_t document = rng.below(kDocuments);
  store.run([&](Transaction& tx) {
    const std::string row = key("revs", document);
    benchmark::DoNotOptimize(tx.get(row));
    tx.set(row, leaf);
    tx.set(key("body", document), body);
    tx.set(key("changes", document), leaf);
  });
}

void commits(benchmark::State& state) {
  const auto clients = static_cast<std::size_t>(state.range(0));
  const std::size_t updates_each = clients == 1 ? 500 : 100;
  const TemporaryDirectory directory;
  LogCounts log;
  const auto env = rocksdb::NewCompositeEnv(std::make_shared<CountingFileSystem>(log));
  const SystemClock clock;
  SystemRng rng;
  Options options;
  options.directory = directory.path() + "/store";
  options.env = env.get();
  EmbeddedDatabase store(options, clock, rng);
  const std::uint64_t syncs_before = log.syncs;
  const std::uint64_t bytes_before = log.bytes;
  for (auto _ : state) {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < clients; ++i) {
      threads.emplace_back([&] {
        SystemRng own_rng;
        for (std::size_t n = 0; n < updates_each; ++n) update(store, own_rng);
      });
    }
  }
  const auto done = static_cast<double>(state.iterations()) * static_cast<double>(clients * updates_each);
  const auto syncs = static_cast<double>(log.syncs - syncs_before);
  state.counters["commits_per_second"] = benchmark::Counter(done, benchmark::Counter::kIsRate);
  state.counters["commits_per_sync"] = done / syncs;
  state.counters["syncs_per_second"] = benchmark::Counter(syncs, benchmark::Counter::kIsRate);
  state.counters["conflicts"] = static_cast<double>(store.stats().conflicts) / done;
  state.counters["log_bytes_per_commit"] = static_cast<double>(log.bytes - bytes_before) / done;
  state.counters["commits_an_iteration"] = static_cast<double>(clients * updates_each);
}
BENCHMARK(commits)->Name("Commits")->Arg(1)->Arg(16)->Arg(128)->MeasureProcessCPUTime()->UseRealTime()->Unit(
    benchmark::kMillisecond);

}  // namespace
}  // namespace divan::kv::embedded
