// Reads of a million documents that are in memory: the engine beside RocksDB and LMDB by themselves, on the
// same rows. Each document has a leaf's row (about 100 bytes) and a body (about 900 bytes) as
// docs/keyspace.md describes them; they were written in the order of the bodies. RocksDB has a copy of the
// engine's files and its options; LMDB has been filled in the order of its keys, which is its best case.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <lmdb.h>
#include <rocksdb/db.h>
#include <rocksdb/utilities/checkpoint.h>

#include <thread>

#include "divan/kv/embedded/rocksdb_options.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/stamping.h"
#include "divan/kv/tuple_packer.h"

namespace divan::kv::embedded {
namespace {

constexpr std::uint64_t kDocuments = 1'000'000;
constexpr std::uint64_t kTogether = 1000;  // documents a transaction
constexpr int kReads = 10;                 // a transaction
constexpr std::size_t kMany = 100;

enum class Section { rows, bodies };

// The documents' identifiers are in another order than the documents: this one's is the `number`th of all.
std::uint64_t place(std::uint64_t document) { return document * 7919 % kDocuments; }

std::string row_key(std::uint64_t number) {
  std::string key;
  tuple::Packer(key).string("db").integer(1).integer(2).string(fmt::format("package-{:08}", number));
  tuple::Packer(key).integer(1).integer(1).bytes(fmt::format("{:016x}", number * 0x9E3779B97F4A7C15));
  return key;
}

std::string body_key(std::uint64_t document) {
  const auto stamp = versionstamp_bytes(static_cast<Version>(1 + document / kTogether), 0);
  std::string key;
  tuple::Packer(key).string("db").integer(1).integer(3);
  tuple::Packer(key)
      .versionstamp(Versionstamp::complete(stamp, static_cast<std::uint16_t>(document % kTogether)))
      .integer(0);
  return key;
}

std::string key_of(Section section, std::uint64_t number) {
  return section == Section::rows ? row_key(number) : body_key(number);
}

std::string row_of(std::uint64_t number) { return fmt::format("{:012}{:028}", number, number * 17); }

// Like a package of Debian: words that come again and again, numbers and a digest.
std::string body_of(std::uint64_t number) {
  static constexpr std::array kWords = {"libc6 (>= 2.34)",    "role::program", "interface::x11",
                                        "implemented-in::c",  "development",   "documentation",
                                        "libstdc++6 (>= 12)", "python3:any",   "shared library"};
  SeededRng rng(number);
  std::string body = fmt::format(R"({{"package":"package-{}","version":"{}.{}","size":{},"depends":")",
                                 number, number % 7, number % 101, rng.below(10'000'000));
  while (body.size() < 800) {
    body += kWords[rng.below(kWords.size())];
    body += fmt::format(", {} ", rng.below(100'000));
  }
  return body + fmt::format(R"(","sha256":"{:016x}{:016x}{:016x}{:016x}"}})", rng.next(), rng.next(),
                            rng.next(), rng.next());
}

// What a client would do with a row at the least.
void use(std::string_view value) { benchmark::DoNotOptimize(value.front() + value.back()); }

void check(bool well) {
  if (!well) throw std::runtime_error("A read failed.");
}

Options options_in(const std::string& directory) {
  Options options;
  options.directory = directory;
  options.durable = false;
  options.cache_bytes = std::size_t{3} << 30;
  return options;
}

class Lmdb {
 public:
  explicit Lmdb(const std::string& directory) {
    std::filesystem::create_directory(directory);
    check(mdb_env_create(&env_) == 0);
    check(mdb_env_set_mapsize(env_, std::size_t{8} << 30) == 0);
    check(mdb_env_open(env_, directory.c_str(), MDB_NOSYNC | MDB_NORDAHEAD, 0600) == 0);
    MDB_txn* tx = nullptr;
    check(mdb_txn_begin(env_, nullptr, 0, &tx) == 0);
    check(mdb_dbi_open(tx, nullptr, 0, &rows_) == 0);
    const auto put = [&](std::string key, std::string value) {
      MDB_val k{key.size(), key.data()};
      MDB_val v{value.size(), value.data()};
      check(mdb_put(tx, rows_, &k, &v, MDB_APPEND) == 0);
    };
    for (std::uint64_t i = 0; i < kDocuments; ++i) put(row_key(i), row_of(i));
    for (std::uint64_t i = 0; i < kDocuments; ++i) put(body_key(i), body_of(i));
    check(mdb_txn_commit(tx) == 0);
  }
  ~Lmdb() { mdb_env_close(env_); }

  MDB_env* env() { return env_; }
  MDB_dbi rows() const { return rows_; }

 private:
  MDB_env* env_ = nullptr;
  MDB_dbi rows_ = 0;
};

void wait_for_compactions(rocksdb::DB& db) {
  rocksdb::FlushOptions flush;
  check(db.Flush(flush).ok());
  for (const auto* property : {"rocksdb.compaction-pending", "rocksdb.num-running-compactions"}) {
    for (std::uint64_t value = 1; value != 0; std::this_thread::yield()) {
      check(db.GetIntProperty(property, &value));
      if (value != 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

// The three stores, filled once a process.
class Stores {
 public:
  static Stores& get() {
    static Stores stores;
    return stores;
  }

  EmbeddedDatabase& divan() { return *divan_; }
  rocksdb::DB& rocksdb() { return *rocksdb_; }
  Lmdb& lmdb() { return *lmdb_; }

 private:
  Stores() {
    const std::string ours = directory_.path() + "/divan";
    const std::string copy = directory_.path() + "/rocksdb";
    fill(ours);
    {
      const auto db = open(options_in(ours));
      wait_for_compactions(*db);
      rocksdb::Checkpoint* made = nullptr;
      check(rocksdb::Checkpoint::Create(db.get(), &made).ok());
      const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
      check(checkpoint->CreateCheckpoint(copy).ok());
    }
    rocksdb_ = open(options_in(copy));
    divan_ = std::make_unique<EmbeddedDatabase>(options_in(ours), clock_, rng_);
    lmdb_ = std::make_unique<Lmdb>(directory_.path() + "/lmdb");
  }

  void fill(const std::string& directory) {
    EmbeddedDatabase store(options_in(directory), clock_, rng_);
    for (std::uint64_t first = 0; first < kDocuments; first += kTogether) {
      store.run([&](Transaction& tx) {
        for (std::uint64_t i = first; i < first + kTogether; ++i) {
          tx.set(row_key(place(i)), row_of(place(i)));
          tx.set(body_key(i), body_of(i));
        }
      });
    }
  }

  std::unique_ptr<rocksdb::DB> open(const Options& options) {
    rocksdb::DB* db = nullptr;
    check(rocksdb::DB::Open(rocksdb_options(options), options.directory, &db).ok());
    return std::unique_ptr<rocksdb::DB>(db);
  }

  TemporaryDirectory directory_;
  SystemClock clock_;
  SystemRng rng_;
  std::unique_ptr<EmbeddedDatabase> divan_;
  std::unique_ptr<rocksdb::DB> rocksdb_;
  std::unique_ptr<Lmdb> lmdb_;
};

// A read of one version in each store, with the same three functions.

class DivanReader {
 public:
  void begin() { tx_ = Stores::get().divan().begin(); }
  void get(const std::string& key) { use(*tx_->get(key)); }
  void get_many(std::span<const std::string> keys) {
    for (const auto& value : tx_->get_many(keys)) use(*value);
  }
  void scan(const std::string& begin, std::size_t rows) {
    std::size_t seen = 0;
    tx_->scan(KeyRange{begin, "\xff"}, {.limit = rows}, [&](std::string_view, std::string_view value) {
      use(value);
      return ++seen < rows;
    });
    check(seen == rows);
  }

 private:
  std::unique_ptr<Transaction> tx_;
};

class RocksdbReader {
 public:
  void begin() {}
  void get(const std::string& key) {
    rocksdb::PinnableSlice value;
    check(db_.Get(rocksdb::ReadOptions(), db_.DefaultColumnFamily(), key, &value).ok());
    use(view(value));
  }
  void get_many(std::span<const std::string> keys) {
    const std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
    std::vector<rocksdb::PinnableSlice> values(keys.size());
    std::vector<rocksdb::Status> statuses(keys.size());
    db_.MultiGet(rocksdb::ReadOptions(), db_.DefaultColumnFamily(), keys.size(), slices.data(), values.data(),
                 statuses.data());
    for (const auto& value : values) use(view(value));
  }
  void scan(const std::string& begin, std::size_t rows) {
    rocksdb::ReadOptions options;
    options.total_order_seek = true;
    const std::unique_ptr<rocksdb::Iterator> it(db_.NewIterator(options));
    for (it->Seek(begin); rows > 0 && it->Valid(); it->Next(), --rows) use(view(it->value()));
    check(rows == 0);
  }

 private:
  rocksdb::DB& db_ = Stores::get().rocksdb();
};

class LmdbReader {
 public:
  LmdbReader() {
    check(mdb_txn_begin(lmdb_.env(), nullptr, MDB_RDONLY, &tx_) == 0);
    check(mdb_cursor_open(tx_, lmdb_.rows(), &cursor_) == 0);
  }
  ~LmdbReader() {
    mdb_cursor_close(cursor_);
    mdb_txn_abort(tx_);
  }
  void begin() {
    mdb_txn_reset(tx_);
    check(mdb_txn_renew(tx_) == 0);
    check(mdb_cursor_renew(tx_, cursor_) == 0);
  }
  void get(const std::string& key) {
    MDB_val k = val(key), value;
    check(mdb_get(tx_, lmdb_.rows(), &k, &value) == 0);
    use(text(value));
  }
  void get_many(std::span<const std::string> keys) {
    for (const auto& key : keys) get(key);
  }
  void scan(const std::string& begin, std::size_t rows) {
    MDB_val key = val(begin), value;
    check(mdb_cursor_get(cursor_, &key, &value, MDB_SET_RANGE) == 0);
    for (use(text(value)); --rows > 0; use(text(value))) {
      check(mdb_cursor_get(cursor_, &key, &value, MDB_NEXT) == 0);
    }
  }

 private:
  static MDB_val val(const std::string& bytes) { return {bytes.size(), const_cast<char*>(bytes.data())}; }
  static std::string_view text(const MDB_val& value) {
    return {static_cast<const char*>(value.mv_data), value.mv_size};
  }

  Lmdb& lmdb_ = Stores::get().lmdb();
  MDB_txn* tx_ = nullptr;
  MDB_cursor* cursor_ = nullptr;
};

// Random keys of a section, made beforehand; a scan that begins at one fits before the end.
std::vector<std::string> random_keys(Section section, std::size_t scanned = 0) {
  SeededRng rng(11);
  std::vector<std::string> keys;
  for (int i = 0; i < 50'000; ++i) keys.push_back(key_of(section, rng.below(kDocuments - scanned)));
  return keys;
}

// So that all is in the caches.
template <class Reader>
void warm_up(Reader& reader) {
  static const bool once [[maybe_unused]] = [&] {
    for (const Section section : {Section::rows, Section::bodies}) {
      for (std::uint64_t i = 0; i < kDocuments; i += kTogether) {
        reader.begin();
        reader.scan(key_of(section, i), kTogether);
      }
    }
    return true;
  }();
}

template <class Reader>
void gets(benchmark::State& state, Section section) {
  Reader reader;
  warm_up(reader);
  const auto keys = random_keys(section);
  std::size_t next = 0;
  for (auto _ : state) {
    reader.begin();
    for (int i = 0; i < kReads; ++i) reader.get(keys[next++ % keys.size()]);
  }
  state.SetItemsProcessed(state.iterations() * kReads);
}

template <class Reader>
void get_manys(benchmark::State& state, Section section) {
  Reader reader;
  warm_up(reader);
  const auto keys = random_keys(section);
  std::size_t next = 0;
  for (auto _ : state) {
    reader.begin();
    reader.get_many(std::span(keys).subspan(next, kMany));
    next = (next + kMany) % keys.size();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kMany));
}

template <class Reader>
void scans(benchmark::State& state, Section section, std::size_t rows) {
  Reader reader;
  warm_up(reader);
  const auto keys = random_keys(section, rows);
  std::size_t next = 0;
  for (auto _ : state) {
    reader.begin();
    reader.scan(keys[next++ % keys.size()], rows);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(rows));
}

template <class Reader>
void add_benchmarks(const std::string& store) {
  for (const auto& [section, name] :
       {std::pair(Section::rows, "rows"), std::pair(Section::bodies, "bodies")}) {
    const auto named = [&, kind = name](const std::string& what) {
      return fmt::format("Reads/{}/{}/{}", what, kind, store);
    };
    benchmark::RegisterBenchmark(named("get").c_str(), gets<Reader>, section);
    benchmark::RegisterBenchmark(named("get_many_100").c_str(), get_manys<Reader>, section);
    for (const std::size_t rows : {10u, 100u, 10'000u}) {
      benchmark::RegisterBenchmark(named(fmt::format("scan_{}", rows)).c_str(), scans<Reader>, section, rows);
    }
  }
}

const bool added [[maybe_unused]] = [] {
  add_benchmarks<DivanReader>("divan");
  add_benchmarks<RocksdbReader>("rocksdb");
  add_benchmarks<LmdbReader>("lmdb");
  return true;
}();

}  // namespace
}  // namespace divan::kv::embedded
