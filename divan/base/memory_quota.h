// Memory that work holds while it waits, limited for each of those who cause it.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "divan/base/check.h"
#include "divan/base/mutex.h"

namespace divan {

/// The limits of a MemoryQuota, in bytes.
struct MemoryLimits {
  std::size_t all;     ///< of all keys together
  std::size_t of_one;  ///< of one key
  std::size_t share;   ///< that a key may hold however much others do
};

/// Which limit does not allow a reservation.
enum class MemoryLimit : std::uint8_t { none, all, of_one };

/// Counts the memory that each key holds, such as a database or a user. A key that holds none gets what it
/// asks for, so all work can be done, if only one after the other. Thread-safe.
template <class Key>
class MemoryQuota {
 public:
  MemoryQuota(const MemoryLimits& limits, MutexRank rank)
      : limits_(limits), mutex_(rank, "MemoryQuota::mutex_") {}
  MemoryQuota(const MemoryQuota&) = delete;
  MemoryQuota& operator=(const MemoryQuota&) = delete;

  /// Memory of a key, until this is destroyed. The quota must outlive it. Not thread-safe.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(MemoryQuota& quota, Key key) : quota_(&quota), key_(std::move(key)) {}
    Reservation(Reservation&& other) noexcept { *this = std::move(other); }
    Reservation& operator=(Reservation&& other) noexcept {
      std::swap(quota_, other.quota_);
      std::swap(key_, other.key_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Reservation() {
      if (bytes_ > 0) quota_->release(key_, bytes_);
    }

    /// Reserves more, unless a limit does not allow it, which is returned.
    MemoryLimit add(std::size_t bytes) {
      const auto limit = quota_->reserve(key_, bytes);
      if (limit == MemoryLimit::none) bytes_ += bytes;
      return limit;
    }

   private:
    MemoryQuota* quota_ = nullptr;
    Key key_{};
    std::size_t bytes_ = 0;
  };

 private:
  MemoryLimit reserve(const Key& key, std::size_t bytes) {
    if (bytes == 0) return MemoryLimit::none;
    std::lock_guard lock(mutex_);
    const auto found = reserved_.find(key);
    const std::size_t held = found == reserved_.end() ? 0 : found->second;
    if (held > 0 && held + bytes > limits_.of_one) return MemoryLimit::of_one;
    if (held > 0 && held + bytes > limits_.share && all_ + bytes > limits_.all) return MemoryLimit::all;
    reserved_[key] = held + bytes;
    all_ += bytes;
    return MemoryLimit::none;
  }

  void release(const Key& key, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    const auto found = reserved_.find(key);
    DIVAN_CHECK(found != reserved_.end() && found->second >= bytes && all_ >= bytes,
                "{} bytes are released that were not reserved", bytes);
    found->second -= bytes;
    if (found->second == 0) reserved_.erase(found);
    all_ -= bytes;
  }

  const MemoryLimits limits_;
  Mutex mutex_;
  std::map<Key, std::size_t> reserved_;  // without zeros; protected by mutex_
  std::size_t all_ = 0;                  // their sum; protected by mutex_
};

}  // namespace divan
