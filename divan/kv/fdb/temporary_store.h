// A store of a test's own in the cluster that FDB_CLUSTER_FILE names. For tests.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include "divan/kv/fdb/engine.h"

namespace divan::kv::fdb {

/// The cluster that tests may use, if there is one.
inline std::optional<std::string> test_cluster_file() {
  const char* const file = std::getenv("FDB_CLUSTER_FILE");
  return file == nullptr || *file == '\0' ? std::nullopt : std::optional<std::string>(file);
}

/// The message of tests that are skipped without one.
inline constexpr const char* kNoTestCluster =
    "FDB_CLUSTER_FILE is not set: there is no FoundationDB to test with";

/// Options for a store with a name of its own.
inline Options temporary_options(Rng& rng) {
  Options options;
  options.cluster_file = test_cluster_file().value_or("");
  options.name = "divan test " + rng.uuid();
  options.start_timeout = std::chrono::seconds(60);
  options.answer_timeout = std::chrono::seconds(60);
  if (const char* const library = std::getenv("DIVAN_FDB_LIBRARY")) options.client.library = library;
  return options;
}

/// Gone with this object. Thread-safe as far as the database is.
class TemporaryStore {
 public:
  explicit TemporaryStore(const Clock& clock, std::size_t max_watches = 10'000) : clock_(clock) {
    options_ = temporary_options(rng_);
    options_.max_watches = max_watches;
    database_.emplace(options_, clock_, rng_);
  }
  ~TemporaryStore() {
    database_.reset();
    erase_store(options_, clock_);
  }
  TemporaryStore(const TemporaryStore&) = delete;
  TemporaryStore& operator=(const TemporaryStore&) = delete;

  FdbDatabase& operator*() { return *database_; }
  FdbDatabase* operator->() { return &*database_; }
  const Options& options() const { return options_; }

 private:
  const Clock& clock_;
  SystemRng rng_;
  Options options_;
  std::optional<FdbDatabase> database_;
};

}  // namespace divan::kv::fdb
