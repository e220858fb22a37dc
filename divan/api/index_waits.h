// Counts the requests of this process that wait for an index.
#pragma once

#include <map>
#include <string>

#include "divan/base/mutex.h"

namespace divan::api {

/// The counts, by the id of the index's build (index/builds.h). Thread-safe.
class IndexWaits {
 public:
  std::size_t count(const std::string& build_id) const {
    std::lock_guard lock(mutex_);
    const auto found = counts_.find(build_id);
    return found == counts_.end() ? 0 : found->second;
  }

 private:
  friend class IndexWait;

  mutable Mutex mutex_{MutexRank::index_waits, "IndexWaits::mutex_"};  // protects counts_
  std::map<std::string, std::size_t> counts_;                          // without zeros
};

/// A waiting request, counted until it is destroyed.
class IndexWait {
 public:
  IndexWait(IndexWaits& waits, std::string build_id) : waits_(waits), build_id_(std::move(build_id)) {
    std::lock_guard lock(waits_.mutex_);
    ++waits_.counts_[build_id_];
  }
  ~IndexWait() {
    std::lock_guard lock(waits_.mutex_);
    const auto found = waits_.counts_.find(build_id_);
    if (--found->second == 0) waits_.counts_.erase(found);
  }
  const std::string& build_id() const { return build_id_; }
  IndexWait(const IndexWait&) = delete;
  IndexWait& operator=(const IndexWait&) = delete;

 private:
  IndexWaits& waits_;
  const std::string build_id_;
};

}  // namespace divan::api
