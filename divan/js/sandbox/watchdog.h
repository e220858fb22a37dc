// Ends invocations that run too long, and the process where that does not help.
//
// The script's thread only counts: an invocation begins and ends by adding one to a number. A second thread
// looks at that number every kTick while a batch runs, and so measures how long an invocation has been
// running: in processor time of the script's thread, so that a busy machine fails no function. Over its limit
// it asks the engine to interrupt the script, which works in loops and regular expressions; an invocation
// that goes on for kGraceMs more (a single huge native call, a garbage collector that thrashes) ends the
// process, which answers where that happened. The same thread notices that the server has gone while a script
// runs.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include <time.h>

namespace divan::js::sandbox {

/// One for a process, made by the script's thread, which alone may call it.
class Watchdog {
 public:
  /// `interrupt` is called from the second thread and asks the engine to call its interrupt callback soon.
  /// `server_fd` reads as hung up when the server has gone.
  Watchdog(std::function<void()> interrupt, int server_fd);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// `invocation_ms` of processor time, `batch_ms` of real time.
  void begin_batch(std::uint32_t invocation_ms, std::uint32_t batch_ms);
  /// Invocations from here on are for this document or group of the batch, at first for number 0.
  void begin_item(std::uint32_t number) { item_.store(number, std::memory_order_relaxed); }
  /// When it returns, nothing has been answered in the batch's name, and nothing will be.
  void end_batch();
  void begin_invocation() { step(); }
  void end_invocation() { step(); }

  /// Returns true if the invocation that runs was found over its limit.
  bool invocation_expired() const { return expired_.load() == invocation_.load(std::memory_order_relaxed); }
  /// Returns true if the batch was found over its limit.
  bool batch_expired() const { return batch_expired_.load(std::memory_order_relaxed); }

 private:
  using Milliseconds = std::chrono::milliseconds;

  void step() {
    invocation_.store(invocation_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void watch();
  void watch_batch(std::unique_lock<std::mutex>& lock);
  void watch_invocation();
  [[noreturn]] void exit_stuck() const;
  void exit_if_alone() const;
  std::chrono::nanoseconds script_time() const;

  const std::function<void()> interrupt_;
  const int server_fd_;
  clockid_t script_clock_ = 0;

  std::atomic<std::uint64_t> invocation_{0};  // odd while one runs
  std::atomic<std::uint32_t> item_{0};
  std::atomic<std::uint64_t> expired_{~std::uint64_t{0}};
  std::atomic<bool> batch_expired_{false};

  std::mutex mutex_;  // guards what follows, up to the thread's own
  std::condition_variable wake_;
  bool asleep_ = false;
  std::uint64_t batch_ = 0;  // odd while one runs
  Milliseconds invocation_limit_{0};
  Milliseconds batch_limit_{0};

  std::uint64_t seen_ = 0;  // the watching thread's own: the invocation that it looked at last,
  std::chrono::nanoseconds seen_since_{};  // and the script's time then

  std::thread thread_;  // never ends
};

}  // namespace divan::js::sandbox
