// What many threads touch all the time without touching each other's cache lines: a counter that is written
// often and read seldom, and a gate for data that is read often and replaced seldom.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

namespace divan {

/// Bytes that two processors cannot write at once without taking turns. What one thread writes often is kept
/// this far from what others read often.
inline constexpr std::size_t kCacheLine = 64;

/// Into how many stripes striped data is divided. More threads than this share stripes: slower, never wrong.
inline constexpr std::size_t kStripes = 16;

/// The calling thread's stripe, 0 to kStripes - 1: threads take them in turn as they first ask.
inline std::size_t thread_stripe() noexcept {
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t stripe = next.fetch_add(1, std::memory_order_relaxed) % kStripes;
  return stripe;
}

/// A sum that any thread adds to without disturbing others. Thread-safe.
class StripedCounter {
 public:
  void add(std::uint64_t n) noexcept {
    stripes_[thread_stripe()].value.fetch_add(n, std::memory_order_relaxed);
  }

  /// The sum of all that was added before this call, and perhaps of some that is added during it.
  std::uint64_t total() const noexcept;

 private:
  struct alignas(kCacheLine) Stripe {
    std::atomic<std::uint64_t> value{0};
  };
  std::array<Stripe, kStripes> stripes_;
};

/// Lets readers walk a shared structure without a lock while a writer takes parts out of it: the writer
/// unlinks a part, waits for the readers, and then may destroy it. striped.cc says why that is safe.
/// Thread-safe.
///
/// A reader loads the structure's pointers inside a Section, as std::atomic with memory_order_seq_cst; a
/// writer stores them in the same way. Sections are meant to be very short (a look-up), since a writer waits
/// for them; a thread must not wait for the readers while it is inside a section itself.
class ReaderGate {
 public:
  /// A reader's stay. Sections may nest.
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

  /// Returns when every section that could have seen what the caller has unlinked before is over. Sections
  /// that begin later do not delay it.
  void wait_for_readers();

 private:
  struct alignas(kCacheLine) Stripe {
    std::array<std::atomic<std::uint32_t>, 2> inside{};  // readers by the phase that they began in
  };
  std::array<Stripe, kStripes> stripes_;
  alignas(kCacheLine) std::atomic<std::uint32_t> phase_{0};
  std::mutex writer_;
};

}  // namespace divan
