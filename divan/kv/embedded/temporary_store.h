// A real embedded store in a directory that goes away with it. For the tests and benchmarks of every module.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "divan/kv/embedded/engine.h"

namespace divan::kv::embedded {

/// A directory below the system's temporary one, removed with all that is in it at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "divan-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw internal_error("Cannot make a temporary directory.");
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Not thread-safe itself; the database is.
class TemporaryStore {
 public:
  /// Without a clock, the machine's. Commits are not synced: that is not what these tests are about.
  explicit TemporaryStore(const Clock* clock = nullptr) : clock_(clock ? *clock : system_clock_) { open(); }

  EmbeddedDatabase& operator*() { return *database_; }
  EmbeddedDatabase* operator->() { return database_.get(); }

  /// Closes and opens the store again: what is there then was written down.
  void reopen() {
    database_.reset();
    open();
  }

 private:
  void open() {
    Options options;
    options.directory = directory_.path() + "/store";
    options.durable = false;
    options.cache_bytes = 8 << 20;
    options.least_passed = 1;  // so that all tests use empty ranges
    database_ = std::make_unique<EmbeddedDatabase>(options, clock_, rng_);
  }

  TemporaryDirectory directory_;
  SystemClock system_clock_;
  const Clock& clock_;
  SystemRng rng_;
  std::unique_ptr<EmbeddedDatabase> database_;
};

}  // namespace divan::kv::embedded
