// The threads on which functions of design documents are called (not those of views).
//
// A call blocks its thread until a JavaScript process has answered. Quick functions run on threads of their
// own, in processes that are reserved for such calls (js::Limits::urgent). A call that turns out to be slow
// is repeated on other threads, which wait for the processes of background work. So slow functions, of
// however many databases, delay no quick ones. On both, databases take turns (base/fair_thread_pool.h).
#pragma once

#include <functional>
#include <map>

#include "divan/base/fair_thread_pool.h"
#include "divan/js/program.h"

namespace divan::api {

/// What runs on the threads for a database: one task of each kind at a time.
enum class FunctionUse : std::uint8_t { validation, feed, update };

/// Thrown by a call on a thread for quick functions that turns out to be slow. Not an error: the task is
/// repeated. Tasks must let it pass, and be as they were before.
struct SlowFunction {};

/// Thread-safe.
class FunctionThreads {
 public:
  /// `slow_threads`: number of threads for slow functions; more than there are processes are of no use.
  explicit FunctionThreads(std::size_t slow_threads);

  /// Runs `task` once, or a second time if its functions are slow. Returns false if the threads are stopped.
  bool submit(std::int64_t database, FunctionUse use, std::function<void()> task);

  /// The limits for the functions that the running task calls. Must be called by a task.
  static const js::Limits& limits();

  /// Memory that waiting tasks of a database hold, until this is destroyed.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(FunctionThreads& threads, std::int64_t database, std::size_t bytes)
        : threads_(&threads), database_(database), bytes_(bytes) {}
    Reservation(Reservation&& other) noexcept { *this = std::move(other); }
    Reservation& operator=(Reservation&& other) noexcept {
      std::swap(threads_, other.threads_);
      std::swap(database_, other.database_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Reservation();

   private:
    FunctionThreads* threads_ = nullptr;
    std::int64_t database_ = 0;
    std::size_t bytes_ = 0;
  };
  /// Throws service_unavailable (503) if the waiting tasks of the database, or of all, hold too much memory.
  /// A database without waiting tasks always gets it.
  Reservation reserve(std::int64_t database, std::size_t bytes);

  /// Rejects further tasks, runs the queued ones, and joins the threads. Idempotent.
  void stop();

 private:
  void release(std::int64_t database, std::size_t bytes);

  FairThreadPool quick_;
  FairThreadPool slow_;

  Mutex mutex_{MutexRank::validations, "FunctionThreads::mutex_"};  // protects the members below
  std::map<std::int64_t, std::size_t> reserved_;                    // bytes by database, without zeros
  std::size_t all_reserved_ = 0;
};

}  // namespace divan::api
