// Runs the replications of a process: accepts their jobs, and gives them turns on a limited number of
// threads.
//
// A replication that waits for changes holds no thread. One that has much to do is interrupted after a turn
// of some seconds if others want one. The replications of one replicator database take turns with those of
// others, so that a database with many gets no more than one with few; and it never holds more than half of
// the threads that the others leave, since peers may be slow.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "divan/base/config.h"
#include "divan/base/mutex.h"
#include "divan/base/worker_loop.h"
#include "divan/http_client/async_client.h"
#include "divan/jobs/acceptor.h"
#include "divan/replicator/run.h"
#include "divan/workers/monitor.h"

namespace divan::replicator {

/// The role of the workers that run replications.
inline constexpr std::string_view kRole = "_replicator";

/// The section of the settings, and the most replications that work at a time.
inline constexpr const char* kSection = "replicator";
inline constexpr const char* kMaxJobs = "max_jobs";
inline constexpr std::int64_t kDefaultMaxJobs = 100;
inline constexpr std::int64_t kMostMaxJobs = 10'000;

/// How the settings say that other servers are reached. Throws bad_request if one is invalid.
RemoteOptions remote_options(const Config& config);

/// Thread-safe. All arguments must outlive it.
class Replicator {
 public:
  Replicator(const LocalStore& local, jobs::Queue& queue, workers::Monitor& monitor, Rng& rng,
             const Config& config);
  /// Calls stop(), and waits for the threads.
  ~Replicator();
  Replicator(const Replicator&) = delete;
  Replicator& operator=(const Replicator&) = delete;

  /// Registers as a worker and begins to accept jobs.
  void start(std::string_view worker_id);
  /// Ends running replications, which are released. Idempotent; does not wait.
  void stop();

  /// Makes a replication of this process see that its job is to be cancelled, soon.
  void interrupt(const std::string& id);

 private:
  struct Entry {
    std::unique_ptr<Run> run;
    Run::State state = Run::State::ready;
    bool works = false;
    bool woken = false;  // while it worked
    MonotonicTime wake_at{};
  };
  struct Thread {
    std::thread thread;
    bool has_ended = false;
  };
  // The numbers of replications that have been woken. Wakes may come after the end of the replicator.
  struct Wakes {
    Mutex mutex{MutexRank::wakes, "Wakes::mutex"};  // protects `numbers`
    std::vector<std::uint64_t> numbers;
  };

  void accept_jobs();
  void begin(const jobs::AcceptedJob& job);
  MonotonicTime step();
  void interrupt_cancelled();

  // With mutex_ locked:
  void make_ready(std::uint64_t number, Entry& entry);
  void wake(std::uint64_t number, Entry& entry);
  std::size_t most_threads() const;
  void start_thread();
  bool may_have_thread(const std::string& group) const;
  std::optional<std::uint64_t> next_ready();
  void work(Thread& self);
  void work_on(std::uint64_t number, std::unique_lock<Mutex>& lock);

  const LocalStore local_;
  jobs::Queue& queue_;
  workers::Monitor& monitor_;
  Rng& rng_;
  const Config& config_;
  http_client::AsyncClient waiter_;  // for changes of other servers
  http_client::ResponseMemory response_memory_;
  const RunContext context_;
  const std::shared_ptr<Wakes> wakes_ = std::make_shared<Wakes>();

  jobs::Acceptor acceptor_;
  std::unique_ptr<workers::LocalWorker> worker_;
  std::thread acceptor_thread_;
  std::atomic<bool> stopping_ = false;
  MonotonicTime look_at_{};  // used by step() only

  mutable Mutex mutex_{MutexRank::replicator, "Replicator::mutex_"};  // protects the members below
  ConditionVariable stopped_;                                         // for the acceptor's thread
  ConditionVariable has_work_;                                        // for idle threads
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Entry> entries_;
  std::map<std::string, std::deque<std::uint64_t>> ready_;  // by group
  std::deque<std::string> turns_;                           // the keys of ready_, the next one first
  std::set<std::pair<MonotonicTime, std::uint64_t>> waiting_;
  std::map<std::string, std::size_t> working_;  // how many of each group have a thread,
  std::size_t working_count_ = 0;               // and all
  std::list<Thread> threads_;
  std::size_t ready_count_ = 0;  // all of ready_
  std::size_t alive_ = 0;        // threads that have not ended,
  std::size_t idle_ = 0;         // and those of them that wait for work

  WorkerLoop loop_;  // calls step()
};

}  // namespace divan::replicator
