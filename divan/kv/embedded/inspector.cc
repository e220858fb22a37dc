#include "divan/kv/embedded/inspector.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <rocksdb/db.h>
#include <rocksdb/sst_file_reader.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "divan/base/bytes.h"
#include "divan/kv/embedded/engine.h"
#include "divan/kv/embedded/log_check.h"

namespace divan::kv::embedded {
namespace {

namespace fs = std::filesystem;

// Of the store's files, at once.
constexpr int kMaxOpenFiles = 100;
constexpr std::size_t kReadAhead = 2 << 20;

rocksdb::Options options() {
  rocksdb::Options rocks;
  rocks.max_open_files = kMaxOpenFiles;
  return rocks;
}

divan::Error cannot_read(const std::string& directory, std::string_view why) {
  return internal_error(fmt::format("Data directory {}: {}", directory, why));
}

void check_readable(const std::string& directory) {
  std::error_code error;
  const fs::directory_iterator entries(directory, error);
  if (error && error != std::errc::no_such_file_or_directory)
    throw cannot_read(directory, fmt::format("it cannot be read: {}.", error.message()));
}

// The lock that a server takes, but shared: it can be taken without the right to write. -1: there is no file
// for it, which a server would have made.
int lock(const std::string& directory) {
  const int fd = ::open((directory + "/LOCK").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return -1;
  struct flock whole {};
  whole.l_type = F_RDLCK;
  whole.l_whence = SEEK_SET;
  if (fd >= 0 && ::fcntl(fd, F_SETLK, &whole) == 0) return fd;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (fd >= 0 && (error == EACCES || error == EAGAIN))
    throw cannot_read(directory, "it is in use by another process.");
  throw cannot_read(directory,
                    fmt::format("LOCK cannot be taken: {}.", std::generic_category().message(error)));
}

std::vector<std::string> table_files(const std::string& directory) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".sst") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Inspector::Inspector(const std::string& directory) : directory_(directory) {
  check_readable(directory);
  check_store_format(directory);
  lock_ = lock(directory);
}

Inspector::~Inspector() {
  db_.reset();
  if (lock_ >= 0) ::close(lock_);
}

bool Inspector::check_files(Findings& findings, const Progress& progress) {
  const std::size_t before = findings.count();
  try {
    check_logs(*rocksdb::Env::Default(), directory_);
  } catch (const Error& error) { findings.add(error.reason()); }
  rocksdb::DB* db = nullptr;
  const auto opened = rocksdb::DB::OpenForReadOnly(options(), directory_, &db);
  db_.reset(db);
  std::vector<std::string> files;
  if (opened.ok()) {
    std::vector<rocksdb::LiveFileMetaData> live;
    db_->GetLiveFilesMetaData(&live);
    for (const auto& file : live) files.push_back(file.db_path + file.name);
  } else {
    findings.add(fmt::format("The store cannot be opened: {}", opened.ToString()));
    files = table_files(directory_);  // one of them may be why
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    rocksdb::SstFileReader reader(options());
    auto status = reader.Open(files[i]);
    if (status.ok()) status = reader.VerifyChecksum();
    if (!status.ok()) findings.add(fmt::format("File {}: {}", files[i], status.ToString()));
    progress(static_cast<double>(i + 1) / static_cast<double>(files.size()));
  }
  return findings.count() == before;
}

Version Inspector::check_engine_rows(Findings& findings) {
  Version version = 0;
  scan({"\xff", std::string(kMaxKeyBytes, '\xff')}, [&](std::string_view key, std::string_view value) {
    if (key == kVersionKey && value.size() == 8) {
      version = static_cast<Version>(read_u64(value));
    } else {
      findings.add(fmt::format("This is no row of the engine: {}", to_hex(key.substr(0, 100))));
    }
    return true;
  });
  return version;
}

std::uint64_t Inspector::estimated_rows() const {
  std::uint64_t rows = 0;
  return db_->GetIntProperty(rocksdb::DB::Properties::kEstimateNumKeys, &rows) ? rows : 0;
}

void Inspector::scan(const KeyRange& range, const RowVisitor& visit) {
  const rocksdb::Slice lower(range.begin), upper(range.end);
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  options.readahead_size = kReadAhead;
  options.total_order_seek = true;
  options.iterate_lower_bound = &lower;
  options.iterate_upper_bound = &upper;
  const std::unique_ptr<rocksdb::Iterator> rows(db_->NewIterator(options));
  for (rows->SeekToFirst(); rows->Valid(); rows->Next()) {
    if (!visit(view(rows->key()), view(rows->value()))) break;
  }
  check_status(rows->status());
}

}  // namespace divan::kv::embedded
