#include "divan/kv/embedded/engine.h"

#include <fcntl.h>
#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "divan/base/log.h"
#include "divan/kv/embedded/key_prefix.h"
#include "divan/kv/embedded/transaction.h"

namespace divan::kv::embedded {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormatFile = "FORMAT";
constexpr std::string_view kFormatWords = "divan embedded store, format ";

// Of the memtable's size: some tens of bits a key and a prefix, since a filter that is wrong costs a search.
constexpr double kMemtableFilterRatio = 0.02;

divan::Error cannot_open(const fs::path& directory, std::string_view why) {
  return internal_error(fmt::format("Data directory {}: {}", directory.string(), why));
}

void write_format(const fs::path& file) {
  // Synced by name: a directory whose store survived a power cut must not lack its format.
  const std::string text = fmt::format("{}{}\n", kFormatWords, kFormat);
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const bool written = fd >= 0 &&
                       ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (!written) throw cannot_open(file.parent_path(), std::strerror(error));
}

rocksdb::Options rocksdb_options(const Options& options) {
  rocksdb::Options rocks;
  rocks.create_if_missing = true;
  rocks.write_buffer_size = 64 << 20;
  rocks.max_background_jobs = 2;
  rocks.compression = rocksdb::kLZ4Compression;
  rocks.level_compaction_dynamic_level_bytes = true;
  rocks.bytes_per_sync = 1 << 20;
  rocks.max_open_files = 1000;
  rocks.keep_log_file_num = 5;
  rocks.max_log_file_size = 4 << 20;
  // One writer: nothing to gain from concurrent insertion.
  rocks.allow_concurrent_memtable_write = false;
  rocks.enable_write_thread_adaptive_yield = false;
  // No memtable_insert_with_hint_prefix_extractor: RocksDB before its pull request 12558 used one hint for
  // rows and for deleted ranges, and lost rows.
  rocks.prefix_extractor = filter_prefixes();
  rocks.memtable_prefix_bloom_size_ratio = kMemtableFilterRatio;
  rocks.memtable_whole_key_filtering = true;

  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(options.cache_bytes);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.format_version = 5;
  rocks.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return rocks;
}

std::unique_ptr<rocksdb::DB> open_rocksdb(const Options& options) {
  rocksdb::DB* db = nullptr;
  const auto status = rocksdb::DB::Open(rocksdb_options(options), options.directory, &db);
  if (status.ok()) return std::unique_ptr<rocksdb::DB>(db);
  if (status.IsIOError() && status.ToString().find("lock") != std::string::npos) {
    throw cannot_open(options.directory, "it is in use by another process.");
  }
  throw cannot_open(options.directory, status.ToString());
}

}  // namespace

bool check_format(const std::string& path) {
  const fs::path directory(path);
  const fs::path file = directory / kFormatFile;
  if (!fs::exists(file)) {
    if (!fs::exists(directory / "CURRENT")) return false;
    throw cannot_open(directory,
                      "there is a RocksDB store, but not one of Divan's (its FORMAT file is missing).");
  }
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  // Killed while it was being made.
  if (line.empty() && !fs::exists(directory / "CURRENT")) return false;
  int format = 0;
  if (line.rfind(kFormatWords, 0) != 0 || (format = std::atoi(line.c_str() + kFormatWords.size())) <= 0) {
    throw cannot_open(directory, fmt::format("its FORMAT file is damaged (`{}`).", line.substr(0, 80)));
  }
  if (format > kFormat) {
    throw cannot_open(
        directory,
        fmt::format("its format {} is newer than this version of Divan, which knows {}.", format, kFormat));
  }
  return true;
}

EmbeddedDatabase::EmbeddedDatabase(const Options& options, const Clock& clock, Rng& rng)
    : clock_(clock), rng_(rng) {
  std::error_code error;
  fs::create_directories(options.directory, error);
  if (error) throw cannot_open(options.directory, error.message());
  if (!check_format(options.directory)) write_format(fs::path(options.directory) / kFormatFile);
  db_ = open_rocksdb(options);
  committer_ = std::make_unique<Committer>(*db_, clock, options.durable, options.max_watches);
}

EmbeddedDatabase::~EmbeddedDatabase() {
  committer_.reset();
  if (const auto status = db_->Close(); !status.ok())
    log::warning("Closing the store: {}", status.ToString());
}

std::unique_ptr<Transaction> EmbeddedDatabase::begin() {
  return std::make_unique<EmbeddedTransaction>(*committer_, clock_, rng_);
}

Version EmbeddedDatabase::dump(const RowVisitor& visit) {
  const auto snapshot = committer_->latest();
  const rocksdb::Slice lower, upper("\xff");
  const auto rows = snapshot->iterate(&lower, &upper);
  for (rows->SeekToFirst(); rows->Valid(); rows->Next()) {
    if (!visit(view(rows->key()), view(rows->value()))) break;
  }
  check_status(rows->status());
  return snapshot->version();
}

void EmbeddedDatabase::advance_version(Version at_least) {
  const auto request = std::make_shared<CommitRequest>();
  request->version_at_least = at_least;
  committer_->commit(request);
  if (request->error) throw *request->error;
}

}  // namespace divan::kv::embedded
