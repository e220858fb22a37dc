// A result that FoundationDB's client will deliver.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "divan/base/clock.h"
#include "divan/kv/fdb/api.h"

namespace divan::kv::fdb {

inline const std::uint8_t* data_of(std::string_view bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}
inline int size_of(std::string_view bytes) { return static_cast<int>(bytes.size()); }
inline std::string_view view(const std::uint8_t* data, int size) {
  return {reinterpret_cast<const char*>(data), static_cast<std::size_t>(size)};
}

/// A pending result; cancelled when this object is destroyed. wait() blocks only the thread that calls it;
/// the client's thread wakes it. Not thread-safe.
class Future {
 public:
  Future(const Api& api, FdbFuture* future) : api_(&api), future_(future) {}
  Future(Future&& other) noexcept : api_(other.api_), future_(std::exchange(other.future_, nullptr)) {}
  Future& operator=(Future&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(future_, other.future_);
    return *this;
  }
  ~Future() {
    if (future_ != nullptr) api_->future_destroy(future_);
  }

  /// Waits for the result. Returns false if the deadline passes before.
  bool wait(const Clock& clock, MonotonicTime deadline) const;

  bool is_ready() const { return api_->future_is_ready(future_) != 0; }
  /// 0 or the error. Only when the result is ready, like all functions below.
  FdbError error() const { return api_->future_get_error(future_); }
  FdbFuture* get() const { return future_; }

 private:
  const Api* api_;
  FdbFuture* future_;
};

}  // namespace divan::kv::fdb
