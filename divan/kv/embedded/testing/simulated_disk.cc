#include "divan/kv/embedded/testing/simulated_disk.h"

#include <algorithm>
#include <cstring>

namespace divan::kv::embedded {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

constexpr std::size_t kSector = 512;

std::string directory_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

IOStatus not_found(const std::string& path) { return IOStatus::NotFound(path, "No such file"); }

class Lock final : public rocksdb::FileLock {
 public:
  explicit Lock(std::string the_file) : file(std::move(the_file)) {}
  const std::string file;
};

}  // namespace

class SimulatedDisk::Reader final : public rocksdb::FSSequentialFile, public rocksdb::FSRandomAccessFile {
 public:
  Reader(SimulatedDisk& disk, std::string name, std::shared_ptr<File> file)
      : disk_(disk), name_(std::move(name)), file_(std::move(file)) {}

  IOStatus Read(std::size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* dbg) override {
    const auto status = Read(at_, n, options, result, scratch, dbg);
    at_ += result->size();
    return status;
  }
  IOStatus Skip(std::uint64_t n) override {
    at_ += n;
    return IOStatus::OK();
  }
  IOStatus Read(std::uint64_t offset, std::size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) const override {
    *result = Slice();
    if (auto status = disk_.begin(Operation::read, name_); !status.ok()) return status;
    std::lock_guard lock(disk_.mutex_);
    if (offset >= file_->data.size()) return IOStatus::OK();
    n = std::min<std::size_t>(n, file_->data.size() - offset);
    std::memcpy(scratch, file_->data.data() + offset, n);
    *result = Slice(scratch, n);
    return IOStatus::OK();
  }
  // The two bases have the same names for these.
  bool use_direct_io() const override { return false; }
  std::size_t GetRequiredBufferAlignment() const override { return kSector; }
  IOStatus InvalidateCache(std::size_t, std::size_t) override { return IOStatus::OK(); }

 private:
  SimulatedDisk& disk_;
  const std::string name_;
  const std::shared_ptr<File> file_;
  std::uint64_t at_ = 0;
};

class SimulatedDisk::Writer final : public rocksdb::FSWritableFile {
 public:
  Writer(SimulatedDisk& disk, std::string name, std::shared_ptr<File> file)
      : disk_(disk), name_(std::move(name)), file_(std::move(file)) {}

  using FSWritableFile::Append;
  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    if (auto status = disk_.begin(Operation::append, name_); !status.ok()) return status;
    std::lock_guard lock(disk_.mutex_);
    file_->data.append(data.data(), data.size());
    return IOStatus::OK();
  }
  IOStatus Truncate(std::uint64_t size, const IOOptions&, IODebugContext*) override {
    std::lock_guard lock(disk_.mutex_);
    file_->data.resize(size);
    file_->synced = std::min<std::size_t>(file_->synced, size);
    return IOStatus::OK();
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    if (auto status = disk_.begin(Operation::sync, name_); !status.ok()) return status;
    std::lock_guard lock(disk_.mutex_);
    file_->synced = file_->data.size();
    return IOStatus::OK();
  }
  bool IsSyncThreadSafe() const override { return true; }
  std::uint64_t GetFileSize(const IOOptions&, IODebugContext*) override {
    std::lock_guard lock(disk_.mutex_);
    return file_->data.size();
  }

 private:
  SimulatedDisk& disk_;
  const std::string name_;
  const std::shared_ptr<File> file_;
};

class SimulatedDisk::Directory final : public rocksdb::FSDirectory {
 public:
  Directory(SimulatedDisk& disk, std::string name) : disk_(disk), name_(std::move(name)) {}
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    if (auto status = disk_.begin(Operation::sync_directory, name_); !status.ok()) return status;
    std::lock_guard lock(disk_.mutex_);
    for (const auto& change : disk_.pending_[name_]) {
      for (const auto& [file, data] : change) disk_.durable_[file] = data;
    }
    disk_.pending_.erase(name_);
    return IOStatus::OK();
  }

 private:
  SimulatedDisk& disk_;
  const std::string name_;
};

void SimulatedDisk::set_fault(Fault fault) {
  std::lock_guard lock(mutex_);
  fault_ = std::move(fault);
}

void SimulatedDisk::cut_after(std::uint64_t operations) {
  std::lock_guard lock(mutex_);
  cut_at_ = changes_ + operations;
}

bool SimulatedDisk::is_cut() const {
  std::lock_guard lock(mutex_);
  return changes_ > cut_at_;
}

std::uint64_t SimulatedDisk::changes() const {
  std::lock_guard lock(mutex_);
  return changes_;
}

void SimulatedDisk::power_up(Rng& rng, bool in_order) {
  std::lock_guard lock(mutex_);
  for (const auto& [directory, changes] : pending_) {
    const auto kept = rng.below(changes.size() + 1);
    for (std::size_t i = 0; i < kept; ++i) {
      for (const auto& [file, data] : changes[i]) durable_[file] = data;
    }
  }
  pending_.clear();
  std::erase_if(durable_, [](const auto& entry) { return entry.second == nullptr; });
  files_ = durable_;
  for (const auto& [name, file] : files_) {
    std::string& data = file->data;
    data.resize(file->synced + rng.below(data.size() - file->synced + 1));
    // Not all sectors need to have been written before those behind them.
    const bool has_holes = !in_order && rng.below(2) == 0;
    for (std::size_t at = file->synced; has_holes && at < data.size(); at += kSector) {
      const std::size_t end = std::min((at / kSector + 1) * kSector, data.size());
      if (rng.below(2) == 0)
        std::fill(data.begin() + static_cast<std::ptrdiff_t>(at),
                  data.begin() + static_cast<std::ptrdiff_t>(end), '\0');
    }
    file->synced = data.size();
  }
  locks_.clear();
  cut_at_ = UINT64_MAX;
}

std::vector<std::string> SimulatedDisk::files(const std::string& suffix) const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, file] : files_) {
    if (name.ends_with(suffix)) names.push_back(name);
  }
  return names;
}

std::string SimulatedDisk::contents(const std::string& file) const {
  std::lock_guard lock(mutex_);
  return files_.at(file)->data;
}

void SimulatedDisk::set_contents(const std::string& file, std::string contents) {
  std::lock_guard lock(mutex_);
  files_.at(file)->data = std::move(contents);
  files_.at(file)->synced = files_.at(file)->data.size();
}

void SimulatedDisk::remove(const std::string& file) {
  std::lock_guard lock(mutex_);
  files_.erase(file);
  durable_.erase(file);
}

IOStatus SimulatedDisk::begin(Operation operation, const std::string& file) {
  Fault fault;
  {
    std::lock_guard lock(mutex_);
    if (operation != Operation::open && operation != Operation::read) ++changes_;
    if (changes_ > cut_at_) return IOStatus::IOError(file, "The power is off");
    fault = fault_;
  }
  return fault ? fault(operation, file) : IOStatus::OK();
}

std::shared_ptr<SimulatedDisk::File> SimulatedDisk::find(const std::string& file) const {
  const auto found = files_.find(file);
  return found == files_.end() ? nullptr : found->second;
}

void SimulatedDisk::change_names(const std::string& directory, Change change) {
  for (const auto& [file, data] : change) {
    if (data) {
      files_[file] = data;
    } else {
      files_.erase(file);
    }
  }
  pending_[directory].push_back(std::move(change));
}

IOStatus SimulatedDisk::NewSequentialFile(const std::string& name, const FileOptions&,
                                          std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                          IODebugContext*) {
  if (auto status = begin(Operation::open, name); !status.ok()) return status;
  std::lock_guard lock(mutex_);
  auto file = find(name);
  if (!file) return not_found(name);
  *result = std::make_unique<Reader>(*this, name, std::move(file));
  return IOStatus::OK();
}

IOStatus SimulatedDisk::NewRandomAccessFile(const std::string& name, const FileOptions&,
                                            std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                            IODebugContext*) {
  if (auto status = begin(Operation::open, name); !status.ok()) return status;
  std::lock_guard lock(mutex_);
  auto file = find(name);
  if (!file) return not_found(name);
  *result = std::make_unique<Reader>(*this, name, std::move(file));
  return IOStatus::OK();
}

IOStatus SimulatedDisk::NewWritableFile(const std::string& name, const FileOptions&,
                                        std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext*) {
  if (auto status = begin(Operation::create, name); !status.ok()) return status;
  std::lock_guard lock(mutex_);
  auto file = std::make_shared<File>();
  change_names(directory_of(name), {{name, file}});
  *result = std::make_unique<Writer>(*this, name, std::move(file));
  return IOStatus::OK();
}

IOStatus SimulatedDisk::NewDirectory(const std::string& name, const IOOptions&,
                                     std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext*) {
  *result = std::make_unique<Directory>(*this, name);
  return IOStatus::OK();
}

IOStatus SimulatedDisk::FileExists(const std::string& name, const IOOptions&, IODebugContext*) {
  std::lock_guard lock(mutex_);
  return find(name) || directories_.contains(name) ? IOStatus::OK() : not_found(name);
}

IOStatus SimulatedDisk::GetChildren(const std::string& directory, const IOOptions&,
                                    std::vector<std::string>* result, IODebugContext*) {
  std::lock_guard lock(mutex_);
  result->clear();
  for (const auto& [name, file] : files_) {
    if (directory_of(name) == directory) result->push_back(name.substr(directory.size() + 1));
  }
  return IOStatus::OK();
}

IOStatus SimulatedDisk::DeleteFile(const std::string& name, const IOOptions&, IODebugContext*) {
  if (auto status = begin(Operation::remove, name); !status.ok()) return status;
  std::lock_guard lock(mutex_);
  if (!find(name)) return not_found(name);
  change_names(directory_of(name), {{name, nullptr}});
  return IOStatus::OK();
}

IOStatus SimulatedDisk::CreateDir(const std::string& name, const IOOptions& options, IODebugContext* dbg) {
  return CreateDirIfMissing(name, options, dbg);
}

IOStatus SimulatedDisk::CreateDirIfMissing(const std::string& name, const IOOptions&, IODebugContext*) {
  std::lock_guard lock(mutex_);
  directories_.insert(name);
  return IOStatus::OK();
}

IOStatus SimulatedDisk::DeleteDir(const std::string& name, const IOOptions&, IODebugContext*) {
  std::lock_guard lock(mutex_);
  directories_.erase(name);
  return IOStatus::OK();
}

IOStatus SimulatedDisk::GetFileSize(const std::string& name, const IOOptions&, std::uint64_t* size,
                                    IODebugContext*) {
  std::lock_guard lock(mutex_);
  const auto file = find(name);
  if (!file) return not_found(name);
  *size = file->data.size();
  return IOStatus::OK();
}

IOStatus SimulatedDisk::GetFileModificationTime(const std::string&, const IOOptions&, std::uint64_t* time,
                                                IODebugContext*) {
  *time = 0;
  return IOStatus::OK();
}

IOStatus SimulatedDisk::RenameFile(const std::string& from, const std::string& to, const IOOptions&,
                                   IODebugContext*) {
  if (auto status = begin(Operation::rename, to); !status.ok()) return status;
  std::lock_guard lock(mutex_);
  auto file = find(from);
  if (!file) return not_found(from);
  change_names(directory_of(to), {{from, nullptr}, {to, std::move(file)}});
  return IOStatus::OK();
}

IOStatus SimulatedDisk::LockFile(const std::string& name, const IOOptions&, rocksdb::FileLock** lock,
                                 IODebugContext*) {
  std::lock_guard guard(mutex_);
  if (!locks_.insert(name).second) return IOStatus::IOError(name, "lock is held");
  *lock = new Lock(name);
  return IOStatus::OK();
}

IOStatus SimulatedDisk::UnlockFile(rocksdb::FileLock* lock, const IOOptions&, IODebugContext*) {
  const std::unique_ptr<Lock> held(static_cast<Lock*>(lock));
  std::lock_guard guard(mutex_);
  locks_.erase(held->file);
  return IOStatus::OK();
}

IOStatus SimulatedDisk::GetTestDirectory(const IOOptions&, std::string* path, IODebugContext*) {
  *path = "/tmp";
  return IOStatus::OK();
}

IOStatus SimulatedDisk::GetAbsolutePath(const std::string& path, const IOOptions&, std::string* result,
                                        IODebugContext*) {
  *result = path;
  return IOStatus::OK();
}

IOStatus SimulatedDisk::IsDirectory(const std::string& path, const IOOptions&, bool* result,
                                    IODebugContext*) {
  std::lock_guard lock(mutex_);
  *result = directories_.contains(path);
  return IOStatus::OK();
}

}  // namespace divan::kv::embedded
