#include "divan/kv/embedded/engine.h"

#include <fmt/core.h>
#include <rocksdb/sst_file_reader.h>

#include <filesystem>

#include "divan/base/bytes.h"
#include "divan/base/log.h"
#include "divan/kv/embedded/log_check.h"
#include "divan/kv/embedded/manifest.h"
#include "divan/kv/embedded/rocksdb_options.h"
#include "divan/kv/embedded/transaction.h"

namespace divan::kv::embedded {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormatFile = "FORMAT";
constexpr std::string_view kFormatWords = "divan embedded store, format ";

divan::Error cannot_open(const fs::path& directory, std::string_view why) {
  return internal_error(fmt::format("Data directory {}: {}", directory.string(), why));
}

rocksdb::Env& env_of(const Options& options) { return options.env ? *options.env : *rocksdb::Env::Default(); }

void sync_directory(rocksdb::Env& env, const fs::path& directory) {
  std::unique_ptr<rocksdb::Directory> opened;
  auto status = env.NewDirectory(directory.string(), &opened);
  if (status.ok()) status = opened->Fsync();
  if (!status.ok()) throw cannot_open(directory, status.ToString());
}

// Makes the directory so that it is there after a power cut.
void make_directory(rocksdb::Env& env, const fs::path& directory) {
  if (env.FileExists(directory.string()).ok()) return;
  if (directory.has_parent_path() && directory.parent_path() != directory) {
    make_directory(env, directory.parent_path());
  }
  const auto status = env.CreateDirIfMissing(directory.string());
  if (!status.ok()) throw cannot_open(directory, status.ToString());
  sync_directory(env, directory.has_parent_path() ? directory.parent_path() : fs::path("."));
}

// Synced by name: a directory whose store survived a power cut must not lack its format. Replaces the file by
// renaming, so that a power cut leaves the old format or the new one.
void write_format(rocksdb::Env& env, const fs::path& directory) {
  const std::string text = fmt::format("{}{}\n", kFormatWords, kFormat);
  const std::string file = (directory / kFormatFile).string(), next = file + ".new";
  auto status = rocksdb::WriteStringToFile(&env, text, next, true);
  if (status.ok()) status = env.RenameFile(next, file);
  if (!status.ok()) throw cannot_open(directory, status.ToString());
  sync_directory(env, directory);
}

// Returns true if there is a store. RocksDB would create a new one over a store whose CURRENT file is
// missing.
bool find_store(rocksdb::Env& env, const fs::path& directory) {
  if (env.FileExists((directory / "CURRENT").string()).ok()) return true;
  std::vector<std::string> files;
  if (const auto status = env.GetChildren(directory.string(), &files); !status.ok()) {
    throw cannot_open(directory, status.IsNotFound() ? "it is not a directory." : status.ToString());
  }
  for (const auto& file : files) {
    if (file.ends_with(".sst") || file.ends_with(".log")) {
      throw cannot_open(directory, fmt::format("its file CURRENT is missing, but there is {}.", file));
    }
  }
  return false;
}

// Checks the directory's format and returns it; marks a new directory with ours.
int check_format(rocksdb::Env& env, const fs::path& directory) {
  const std::string file = (directory / kFormatFile).string();
  const bool has_store = find_store(env, directory);
  if (!env.FileExists(file).ok()) {
    if (has_store) {
      throw cannot_open(directory,
                        "there is a RocksDB store, but not one of Divan's (its FORMAT file is missing).");
    }
    write_format(env, directory);
    return kFormat;
  }
  std::string text;
  if (const auto status = rocksdb::ReadFileToString(&env, file, &text); !status.ok()) {
    throw cannot_open(directory, status.ToString());
  }
  // The power may have gone before it was synced, and so before there was a store.
  if (!has_store && (text.empty() || text.front() == '\0' || text.back() != '\n')) {
    write_format(env, directory);
    return kFormat;
  }
  const std::string line = text.substr(0, text.find('\n'));
  int format = 0;
  if (!line.starts_with(kFormatWords) || (format = std::atoi(line.c_str() + kFormatWords.size())) <= 0) {
    throw cannot_open(directory, fmt::format("its FORMAT file is damaged (`{}`).", line.substr(0, 80)));
  }
  if (format >= kOldestFormat && format <= kFormat) return format;
  throw cannot_open(
      directory, fmt::format("its format {} is {} than this version of Divan, which knows {} to {}.", format,
                             format > kFormat ? "newer" : "older", kOldestFormat, kFormat));
}

// RocksDB blames its manifest for tables that cannot be opened: which of them are damaged?
std::string damaged_tables(const Options& options) {
  std::vector<std::string> files;
  env_of(options).GetChildren(options.directory, &files).PermitUncheckedError();
  std::string found;
  for (const auto& file : files) {
    if (!file.ends_with(".sst")) continue;
    const std::string path = options.directory + "/" + file;
    rocksdb::SstFileReader reader(rocksdb_options(options));
    auto status = reader.Open(path);
    if (status.ok()) status = reader.VerifyChecksum();
    if (!status.ok()) found += fmt::format(" {} is damaged.", path);
  }
  return found;
}

// From its first flush on a store's manifest says which log is needed, so that a missing one is noticed.
void number_first_log(rocksdb::DB& db) {
  std::string version;
  if (!db.Get(rocksdb::ReadOptions(), slice(kVersionKey), &version).IsNotFound()) return;
  rocksdb::WriteOptions durable;
  durable.sync = true;
  append_u64(version, 0);
  check_status(db.Put(durable, slice(kVersionKey), version));
  check_status(db.Flush(rocksdb::FlushOptions()));
}

std::unique_ptr<rocksdb::DB> open_rocksdb(const Options& options) {
  rocksdb::DB* db = nullptr;
  const auto status = rocksdb::DB::Open(rocksdb_options(options), options.directory, &db);
  if (status.ok()) {
    std::unique_ptr<rocksdb::DB> opened(db);
    number_first_log(*opened);
    return opened;
  }
  if (status.IsIOError() && status.ToString().find("/LOCK: ") != std::string::npos) {
    throw cannot_open(options.directory, "it is in use by another process.");
  }
  throw cannot_open(options.directory, status.ToString() + damaged_tables(options));
}

}  // namespace

void check_store_format(const std::string& directory) {
  rocksdb::Env& env = *rocksdb::Env::Default();
  if (!env.FileExists(directory).ok() || !find_store(env, directory))
    throw cannot_open(directory, "there is no store.");
  check_format(env, directory);
}

EmbeddedDatabase::EmbeddedDatabase(const Options& options, const Clock& clock, Rng& rng)
    : clock_(clock), rng_(rng) {
  make_directory(env_of(options), options.directory);
  const int format = check_format(env_of(options), options.directory);
  repair_manifest(rocksdb_options(options), options.directory, options.durable);
  if (options.durable) check_logs(env_of(options), options.directory);
  db_ = open_rocksdb(options);
  // Before anything is written that an older version would misread.
  if (format < kFormat) write_format(env_of(options), options.directory);
  committer_ =
      std::make_unique<Committer>(*db_, clock,
                                  CommitterOptions{options.durable, options.max_watches,
                                                   options.max_conflict_bytes, options.least_passed});
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

std::int64_t EmbeddedDatabase::estimate_bytes(const KeyRange& range) {
  rocksdb::SizeApproximationOptions options;
  options.include_memtables = true;
  const rocksdb::Range slices(range.begin, range.end);
  std::uint64_t bytes = 0;
  check_status(db_->GetApproximateSizes(options, db_->DefaultColumnFamily(), &slices, 1, &bytes));
  return static_cast<std::int64_t>(bytes);
}

void EmbeddedDatabase::advance_version(Version at_least) {
  const auto request = std::make_shared<CommitRequest>();
  request->version_at_least = at_least;
  committer_->commit(request);
  if (request->error) throw *request->error;
}

}  // namespace divan::kv::embedded
