// Data that many threads use without sharing cache lines: a counter that is written often and read rarely,
// and a gate for data that is read often and replaced rarely.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "divan/base/mutex.h"

namespace divan {

/// The size of a cache line, in bytes. Data that one thread writes often is kept this far from data that
/// others read often.
inline constexpr std::size_t kCacheLine = 64;

/// The number of stripes. If there are more threads, some share a stripe, which is slower but correct.
inline constexpr std::size_t kStripes = 16;

/// The calling thread's stripe, 0 to kStripes - 1. Stripes are assigned round-robin at a thread's first call.
inline std::size_t thread_stripe() noexcept {
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t stripe = next.fetch_add(1, std::memory_order_relaxed) % kStripes;
  return stripe;
}

/// A sum that many threads add to without contention. Thread-safe.
class StripedCounter {
 public:
  void add(std::uint64_t n) noexcept {
    stripes_[thread_stripe()].value.fetch_add(n, std::memory_order_relaxed);
  }

  /// The sum of all additions before this call, and possibly of some that are concurrent with it.
  std::uint64_t total() const noexcept;

 private:
  struct alignas(kCacheLine) Stripe {
    std::atomic<std::uint64_t> value{0};
  };
  std::array<Stripe, kStripes> stripes_;
};

/// Lets readers walk a shared structure without a lock while a writer removes parts of it: the writer unlinks
/// a part, waits for the readers, and then may destroy the part. striped.cc explains why that is safe.
/// Thread-safe.
///
/// A reader loads the structure's pointers inside a Section, as std::atomic with memory_order_seq_cst; a
/// writer stores them in the same way. Sections must be very short (a lookup), since a writer waits for them.
/// A thread must not call wait_for_readers() inside a section.
class ReaderGate {
 public:
  /// A read-side critical section. Sections may nest.
  class Section {
   public:
    Section(Section&& other) noexcept : inside_(std::exchange(other.inside_, nullptr)) {}
    Section& operator=(Section&& other) noexcept {
      std::swap(inside_, other.inside_);
      return *this;
    }
    ~Section() {
      if (inside_ != nullptr) inside_->fetch_sub(1, std::memory_order_release);
    }

   private:
    friend class ReaderGate;
    explicit Section(std::atomic<std::uint32_t>& inside) noexcept : inside_(&inside) {
      inside.fetch_add(1, std::memory_order_seq_cst);
    }
    std::atomic<std::uint32_t>* inside_;
  };

  /// Never waits.
  [[nodiscard]] Section enter() noexcept {
    return Section(stripes_[thread_stripe()].inside[phase_.load(std::memory_order_relaxed)]);
  }

  /// Returns when every section that could have seen what the caller has unlinked has ended. Sections that
  /// begin later do not delay it.
  void wait_for_readers();

 private:
  struct alignas(kCacheLine) Stripe {
    std::array<std::atomic<std::uint32_t>, 2> inside{};  // readers, by the phase in which they entered
  };
  std::array<Stripe, kStripes> stripes_;
  alignas(kCacheLine) std::atomic<std::uint32_t> phase_{0};
  Mutex writer_{MutexRank::reader_gate, "ReaderGate::writer_"};  // one wait_for_readers() at a time
};

}  // namespace divan
