// The threads on which functions of design documents are called (not those of views).
//
// A call blocks its thread until a JavaScript process has answered. Functions that are known to be quick have
// threads of their own, and so have those that are tried for the first time, or again after ten minutes. Both
// use the processes that are reserved for such calls (js::Limits::urgent). A call that turns out to be slow
// is repeated on a third group of threads, which wait for the processes of background work. So slow
// functions, of however many databases, do not delay quick ones. List functions that read their rows in pages
// have a fourth group: they cannot be repeated, and hold processes of their own. Searches of full-text and
// spatial indexes call no functions, but may take as long: they have a fifth group, of which a database gets
// half. On all, databases take turns (base/fair_thread_pool.h).
#pragma once

#include <atomic>
#include <functional>

#include "divan/base/fair_thread_pool.h"
#include "divan/base/memory_quota.h"
#include "divan/js/program.h"

namespace divan::api {

/// What runs on the threads for a database: one task of each kind at a time.
enum class FunctionUse : std::uint8_t {
  validation,
  feed,
  update,
  show,        ///< show, list and rewrite functions
  paged_list,  ///< list functions that read their rows in pages (js::Pool::list())
  search       ///< searches of full-text and spatial indexes, of which several run
};

/// Thrown by a call whose function is not known to be quick, or turns out to be slow. Not an error: the task
/// is repeated on other threads. Tasks must let it pass, and be as they were before.
struct SlowFunction {};

/// Thread-safe.
class FunctionThreads {
 public:
  using Task = std::function<void()>;

  /// `slow_threads`: number of threads for slow functions, of which more than there are processes are of no
  /// use; and for paged lists, each of which holds an additional process.
  explicit FunctionThreads(std::size_t slow_threads);

  /// Runs `task` once, or, except for paged lists and searches, up to three times if its functions are not
  /// quick. Returns false if the threads are stopped.
  bool submit(std::int64_t database, FunctionUse use, Task task);

  /// The limits for the functions that the running task calls. Must be called by a task.
  static const js::Limits& limits();

  /// Memory that waiting tasks of a database hold.
  using Reservation = MemoryQuota<std::int64_t>::Reservation;
  /// Throws service_unavailable (503) if the waiting tasks of the database hold too much memory, or those of
  /// all do and the database has its share. A database without waiting tasks always gets it.
  Reservation reserve(std::int64_t database, std::size_t bytes);
  /// Reserves more, in the same way.
  static void reserve_more(Reservation& reservation, std::size_t bytes);

  /// Rejects further tasks, runs the queued ones, and joins the threads. Idempotent.
  void stop();

 private:
  using Key = FairThreadPool::Key;

  void try_out(Key key, const Task& task);

  FairThreadPool quick_;
  FairThreadPool trial_;
  FairThreadPool slow_;
  FairThreadPool lists_;
  const std::size_t searches_of_one_;  // database, at a time
  std::atomic<std::size_t> searches_so_far_ = 0;
  FairThreadPool searches_;

  MemoryQuota<std::int64_t> memory_;  // by database
};

}  // namespace divan::api
