// A mutex with a rank: the order in which mutexes may be locked, checked where they are locked.
//
// Two threads that lock the same two mutexes in different orders can block each other for ever. So every
// mutex has a rank, and a thread locks a mutex only if its rank is greater than those of all mutexes that the
// thread holds. Builds with DIVAN_CHECK_MUTEX_RANKS (the presets dev, asan and tsan) check this at each lock
// and end the process at the first one out of order, whether or not another thread is in the way at that
// moment. In all other builds a Mutex is a std::mutex.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace divan {

/// The mutexes of Divan, those that are locked first above. While one is held, those below it may be locked.
enum class MutexRank : std::uint8_t {
  // Held while code of any module runs: listeners, and callbacks of commits and watches.
  config_change,      // one change of the settings at a time
  collected_counter,  // reads a counter for the metrics
  job_maintenance,    // one step of the job maintenance at a time
  monitor_step,       // one step of the workers' monitor at a time
  // app
  load_queue,     // batches between the reader and the senders of `divan load`
  load_progress,  // what `divan load` shows
  // api
  tails,            // the tails of a process, by feed
  tail_followers,   // the feeds that follow a tail
  tail,             // the rows of a tail
  requests,         // the coroutines of requests
  index_waits,      // requests that wait for an index
  password_checks,  // the queue of password comparisons, and their outcomes
  password_hash,    // one new password of users at a time
  validations,      // the documents that wait for validation, and the functions
  // http
  exchange,          // the state of a request and its response
  exchange_mailbox,  // exchanges that an io thread is to serve
  // ken, index, compaction, js
  ken_lag,          // the metrics of ken's lag
  ken,              // the queue and the state of ken
  builder,          // the threads of the index builder
  replicator,       // the running replications
  deliverer,        // the deliveries of a process
  async_client,     // requests to other servers that are to begin or end
  response_memory,  // of replications
  deletion_watch,   // a subscription to the deletion of a database
  build_slots,      // which builds run
  build_meter,      // the metrics of builds
  compactor,        // the compactions of a process
  slow_documents,   // documents on which a map function took long
  js_pool,          // the JavaScript processes and the calls that wait for them
  // jobs, workers
  wait_queues,       // the wait queues of an acceptor, by types
  wait_queue,        // the waiters of a wait queue
  queue_cursors,     // where the polls of an acceptor begin
  undelivered_jobs,  // accepted jobs that are to be released
  damaged_jobs,      // damaged rows of the job queue that were logged
  job_metrics,       // the metrics of job types
  subscriptions,     // subscriptions to the members of roles
  monitor,           // the workers of a process
  local_worker,      // the present registration of a worker
  // docs, updates
  catalog,        // databases as last opened
  uploads,        // abandoned uploads of attachments
  upload_writes,  // the uploads that write, and those that wait to do so
  sequencer,      // the settings and the pause of the updates feed
  // events
  listener_registration,  // one change of a listener's databases at a time
  listener,               // the channels of a listener that have events
  channel_directory,      // the channels by name
  channel,                // the subscribers of a channel
  mailbox,                // the events that wait for a subscriber
  // kv
  fdb_client,          // the FoundationDB client of the process
  fdb_watch,           // a watch of FoundationDB, until it is set and has ended
  fdb_watches,         // the open watches of FoundationDB
  fdb_future,          // the wait for a future of FoundationDB
  reference_store,     // all of the reference store
  embedded_committer,  // the queue of commits
  embedded_snapshot,   // the latest snapshot
  embedded_watches,    // the watches by key
  embedded_empty,      // the empty ranges that scans have found
  watch,               // the state of a watch
  // base
  thread_pool,  // the queue of a thread pool
  wakes,        // replications that have been woken
  reader_gate,  // one writer at a time
  config,       // the values of the settings
  random,       // the state of a random number generator
  notifier,     // the flags of a notifier
  sleep,        // nothing: for the wait of Clock::sleep()
  last = sleep,
};

#ifdef DIVAN_CHECK_MUTEX_RANKS

class Mutex;

/// Mutexes that a thread holds.
struct HeldMutexes {
  std::array<const Mutex*, 16> mutexes;
  std::size_t count;
};
/// Those of the calling thread. A scheduler that runs several functions on a thread, each with its own stack,
/// exchanges them when it switches.
HeldMutexes& held_mutexes();

/// As std::mutex; and ends the process, with a message that names both, if a thread that holds a mutex locks
/// one whose rank is not greater.
class Mutex {
 public:
  /// `name` is for the message, and must be a literal.
  constexpr Mutex(MutexRank rank, const char* name) noexcept : rank_(rank), name_(name) {}

  void lock();
  /// Does not check the rank: it cannot block.
  bool try_lock();
  void unlock();

 private:
  friend class ConditionVariable;
  std::mutex& native() { return mutex_; }

  std::mutex mutex_;
  const MutexRank rank_;
  const char* const name_;
};

#else

class Mutex : public std::mutex {
 public:
  constexpr Mutex(MutexRank, const char*) noexcept {}

 private:
  friend class ConditionVariable;
  std::mutex& native() { return *this; }
};

#endif

/// As std::condition_variable, for locks of a Mutex. A thread that waits counts as holding the mutex.
class ConditionVariable {
 public:
  void notify_one() noexcept { changed_.notify_one(); }
  void notify_all() noexcept { changed_.notify_all(); }

  template <class... Args>
  void wait(std::unique_lock<Mutex>& lock, const Args&... args) {
    Native native(lock);
    changed_.wait(native.lock, args...);
  }
  template <class... Args>
  auto wait_for(std::unique_lock<Mutex>& lock, const Args&... args) {
    Native native(lock);
    return changed_.wait_for(native.lock, args...);
  }
  template <class... Args>
  auto wait_until(std::unique_lock<Mutex>& lock, const Args&... args) {
    Native native(lock);
    return changed_.wait_until(native.lock, args...);
  }

 private:
  // Lends the std::mutex of a locked Mutex.
  struct Native {
    explicit Native(std::unique_lock<Mutex>& of) : lock(of.mutex()->native(), std::adopt_lock) {}
    ~Native() { lock.release(); }
    Native(const Native&) = delete;
    Native& operator=(const Native&) = delete;

    std::unique_lock<std::mutex> lock;
  };

  std::condition_variable changed_;
};

}  // namespace divan
