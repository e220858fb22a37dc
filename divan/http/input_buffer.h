// A buffer of received bytes that are not consumed yet.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "divan/base/check.h"

namespace divan::http {

/// A buffer that is filled at its end and consumed at its front. It grows when a read fills it. Not
/// thread-safe. While a read into space() is pending, only consume() and clear() may be called: they do not
/// move the bytes.
class InputBuffer {
 public:
  static constexpr std::size_t kSmall = 2048;

  std::string_view data() const { return {bytes_.get() + begin_, end_ - begin_}; }
  bool empty() const { return begin_ == end_; }

  void consume(std::size_t size) {
    DIVAN_CHECK(size <= end_ - begin_, "{} of {} bytes are consumed", size, end_ - begin_);
    begin_ += size;
  }
  void clear() { begin_ = end_; }

  /// Ensures that space() has at least one byte. Returns false if data() has `limit` bytes already.
  bool ensure_space(std::size_t limit) {
    if (data().size() >= limit) return false;
    if (empty()) begin_ = end_ = 0;
    if (capacity_ == 0) {
      resize(kSmall);
    } else if (filled_) {
      resize(std::min(capacity_ * 2, std::max(limit, kSmall)));
    }
    filled_ = false;
    DIVAN_CHECK(end_ < capacity_, "a buffer of {} bytes is full", capacity_);
    return true;
  }

  /// Frees the memory of an empty buffer.
  void release() {
    DIVAN_CHECK(empty(), "a buffer with {} bytes is freed", data().size());
    *this = {};
  }

  /// Where the next read goes.
  std::span<char> space() { return {bytes_.get() + end_, capacity_ - end_}; }

  /// Called after a read of `size` bytes into space().
  void commit(std::size_t size) {
    DIVAN_CHECK(size <= capacity_ - end_, "{} bytes were read into a space of {}", size, capacity_ - end_);
    end_ += size;
    filled_ = end_ == capacity_;
  }

 private:
  // Moves the data to the front of a buffer of `capacity` bytes, which must exceed its size.
  void resize(std::size_t capacity) {
    auto bytes = capacity == capacity_ ? nullptr : std::make_unique_for_overwrite<char[]>(capacity);
    const auto size = data().size();
    DIVAN_CHECK(size < capacity, "{} bytes are moved into a buffer of {}", size, capacity);
    if (size > 0) std::memmove(bytes ? bytes.get() : bytes_.get(), data().data(), size);
    if (bytes) bytes_ = std::move(bytes);
    capacity_ = capacity;
    begin_ = 0;
    end_ = size;
  }

  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool filled_ = false;
};

}  // namespace divan::http
