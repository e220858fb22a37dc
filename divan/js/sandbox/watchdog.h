// Interrupts invocations that exceed their time limit, and exits if that fails.
//
// The script's thread only increments a number when an invocation begins and ends. A second thread reads that
// number every kTick while a batch runs, and so measures the time of an invocation, in processor time of the
// script's thread, so that functions do not fail because the machine is busy. Beyond the limit it asks
// the engine to interrupt the script, which works in loops and regular expressions. If the invocation
// continues for kGraceMs more (a single huge native call, a garbage collector that thrashes), the process
// sends a stuck response and exits. The same thread detects that the server has closed the connection while a
// script runs.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <functional>
#include <mutex>
#include <thread>

namespace divan::js::sandbox {

/// A singleton of the process. Created and called by the script's thread only. It has a condition variable of
/// its own, since divan-js shares nothing with the server but the protocol.
class Watchdog {
 public:
  /// `interrupt` is called by the second thread and makes the engine call its interrupt callback soon. poll()
  /// on `server_fd` reports a hang-up when the server has ended.
  Watchdog(std::function<void()> interrupt, int server_fd);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// `invocation_ms` of processor time, `batch_ms` of real time.
  void begin_batch(std::uint32_t invocation_ms, std::uint32_t batch_ms);
  /// Sets the document or group of the batch that the following invocations belong to; initially 0.
  void begin_item(std::uint32_t number) { item_.store(number, std::memory_order_relaxed); }
  /// After the return, the second thread has not sent and will not send a stuck response for the batch.
  void end_batch();
  void begin_invocation() { step(); }
  void end_invocation() { step(); }

  /// Returns true if the running invocation was found to exceed its limit.
  bool invocation_expired() const { return expired_.load() == invocation_.load(std::memory_order_relaxed); }
  /// Returns true if the batch was found to exceed its limit.
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

  std::mutex mutex_;  // guards the members below, up to those of the second thread
  std::condition_variable wake_;
  bool asleep_ = false;
  std::uint64_t batch_ = 0;  // odd while one runs
  Milliseconds invocation_limit_{0};
  Milliseconds batch_limit_{0};

  std::uint64_t seen_ = 0;                 // used by the second thread only: the last invocation seen,
  std::chrono::nanoseconds seen_since_{};  // and the script thread's processor time then

  std::thread thread_;  // never ends
};

}  // namespace divan::js::sandbox
