// A disk in memory that can lose its power.
//
// It knows how much of each file has been synced, and which changes of names (files made, renamed, removed)
// have been synced with their directory. After a power cut there is what a real disk may have left: of each
// directory the changes up to some point, and of each file what was synced and some of the rest, cut off
// anywhere or with blocks of zeros in it.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "divan/base/log.h"
#include "divan/base/rng.h"

namespace divan::kv::embedded {

/// Thread-safe.
class SimulatedDisk final : public rocksdb::FileSystem {
 public:
  enum class Operation { open, read, create, append, sync, rename, remove, sync_directory };
  /// A fault: the status that an operation on a file returns without an effect; ok lets the operation happen.
  using Fault = std::function<rocksdb::IOStatus(Operation, const std::string& file)>;

  /// `fault` is called before each operation, without a lock; it may block. An empty one ends the faults.
  void set_fault(Fault fault);

  /// The power fails at the operation after `operations` more that change something: from then on nothing
  /// works. 0: at the next one.
  void cut_after(std::uint64_t operations);
  bool is_cut() const;
  /// Operations that changed something.
  std::uint64_t changes() const;

  /// The power comes back. No files may be open. `in_order`: what was not synced is cut off somewhere, but
  /// has no blocks of zeros in it.
  void power_up(Rng& rng, bool in_order = false);

  /// The names that end with `suffix`.
  std::vector<std::string> files(const std::string& suffix) const;
  std::string contents(const std::string& file) const;
  void set_contents(const std::string& file, std::string contents);
  void remove(const std::string& file);

  // Of rocksdb::FileSystem.

  const char* Name() const override { return "SimulatedDisk"; }
  rocksdb::IOStatus NewSequentialFile(const std::string&, const rocksdb::FileOptions&,
                                      std::unique_ptr<rocksdb::FSSequentialFile>*,
                                      rocksdb::IODebugContext*) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string&, const rocksdb::FileOptions&,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>*,
                                        rocksdb::IODebugContext*) override;
  rocksdb::IOStatus NewWritableFile(const std::string&, const rocksdb::FileOptions&,
                                    std::unique_ptr<rocksdb::FSWritableFile>*,
                                    rocksdb::IODebugContext*) override;
  rocksdb::IOStatus NewDirectory(const std::string&, const rocksdb::IOOptions&,
                                 std::unique_ptr<rocksdb::FSDirectory>*, rocksdb::IODebugContext*) override;
  rocksdb::IOStatus FileExists(const std::string&, const rocksdb::IOOptions&,
                               rocksdb::IODebugContext*) override;
  rocksdb::IOStatus GetChildren(const std::string&, const rocksdb::IOOptions&, std::vector<std::string>*,
                                rocksdb::IODebugContext*) override;
  rocksdb::IOStatus DeleteFile(const std::string&, const rocksdb::IOOptions&,
                               rocksdb::IODebugContext*) override;
  rocksdb::IOStatus CreateDir(const std::string&, const rocksdb::IOOptions&,
                              rocksdb::IODebugContext*) override;
  rocksdb::IOStatus CreateDirIfMissing(const std::string&, const rocksdb::IOOptions&,
                                       rocksdb::IODebugContext*) override;
  rocksdb::IOStatus DeleteDir(const std::string&, const rocksdb::IOOptions&,
                              rocksdb::IODebugContext*) override;
  rocksdb::IOStatus GetFileSize(const std::string&, const rocksdb::IOOptions&, std::uint64_t*,
                                rocksdb::IODebugContext*) override;
  rocksdb::IOStatus GetFileModificationTime(const std::string&, const rocksdb::IOOptions&, std::uint64_t*,
                                            rocksdb::IODebugContext*) override;
  rocksdb::IOStatus RenameFile(const std::string&, const std::string&, const rocksdb::IOOptions&,
                               rocksdb::IODebugContext*) override;
  rocksdb::IOStatus LockFile(const std::string&, const rocksdb::IOOptions&, rocksdb::FileLock**,
                             rocksdb::IODebugContext*) override;
  rocksdb::IOStatus UnlockFile(rocksdb::FileLock*, const rocksdb::IOOptions&,
                               rocksdb::IODebugContext*) override;
  rocksdb::IOStatus GetTestDirectory(const rocksdb::IOOptions&, std::string*,
                                     rocksdb::IODebugContext*) override;
  rocksdb::IOStatus GetAbsolutePath(const std::string&, const rocksdb::IOOptions&, std::string*,
                                    rocksdb::IODebugContext*) override;
  rocksdb::IOStatus IsDirectory(const std::string&, const rocksdb::IOOptions&, bool*,
                                rocksdb::IODebugContext*) override;

 private:
  struct File {
    std::string data;
    std::size_t synced = 0;
  };
  using Files = std::map<std::string, std::shared_ptr<File>>;
  // Names that change together; without a file: that are gone.
  using Change = std::vector<std::pair<std::string, std::shared_ptr<File>>>;
  class Reader;
  class Writer;
  class Directory;

  rocksdb::IOStatus begin(Operation operation, const std::string& file);
  std::shared_ptr<File> find(const std::string& file) const;
  void change_names(const std::string& directory, Change change);

  // Protects the members below. While it is held, no other mutex is locked. RocksDB and the engine call the
  // disk while they hold theirs.
  mutable std::mutex mutex_;
  Fault fault_;
  Files files_;
  std::set<std::string> directories_;
  std::set<std::string> locks_;
  Files durable_;                                       // names that a power cut leaves
  std::map<std::string, std::vector<Change>> pending_;  // by directory, in order
  std::uint64_t changes_ = 0;
  std::uint64_t cut_at_ = UINT64_MAX;
};

/// What RocksDB is given to run on the disk. Its threads sleep a thousandth of what they want to, which is a
/// second after each failure. As long as it is there nothing is logged: it would be too much.
class SimulatedMachine final : public rocksdb::EnvWrapper {
 public:
  explicit SimulatedMachine(const std::shared_ptr<SimulatedDisk>& disk)
      : SimulatedMachine(rocksdb::NewCompositeEnv(disk)) {}
  ~SimulatedMachine() override { log::set_level(log::Level::info); }
  void SleepForMicroseconds(int micros) override { EnvWrapper::SleepForMicroseconds(micros / 1000); }

 private:
  explicit SimulatedMachine(std::unique_ptr<rocksdb::Env> env) : EnvWrapper(env.get()), env_(std::move(env)) {
    log::set_level(log::Level::off);
  }
  std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace divan::kv::embedded
