// Runs the replications of a process: accepts their jobs, each of which it runs on a thread of its own.
//
// All writes into local databases, documents and checkpoints, check in their transaction that the attempt
// still owns the job. So of two processes that believe to run the same replication, only one writes.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <thread>

#include "divan/base/config.h"
#include "divan/base/mutex.h"
#include "divan/jobs/acceptor.h"
#include "divan/replicator/jobs.h"
#include "divan/replicator/local_peer.h"
#include "divan/replicator/remote_peer.h"
#include "divan/replicator/replication_document.h"
#include "divan/workers/monitor.h"

namespace divan::replicator {

/// The role of the workers that run replications.
inline constexpr std::string_view kRole = "_replicator";

struct ReplicatorOptions {
  std::size_t max_jobs = 500;  ///< that run at a time in this process
  RemoteOptions remote{};
};

/// Thread-safe. All arguments must outlive it.
class Replicator {
 public:
  Replicator(const LocalStore& local, jobs::Queue& queue, workers::Monitor& monitor, Rng& rng,
             ReplicatorOptions options = {});
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

  std::size_t running() const;

 private:
  // A replication that runs.
  struct Run {
    explicit Run(jobs::AcceptedJob the_job) : job(std::move(the_job)) {}
    const jobs::AcceptedJob job;
    std::thread thread{};
    std::atomic<bool> ended = false;
    std::atomic<bool> interrupted = false;
    Peer* source = nullptr;  // protected by Replicator::mutex_
    Peer* target = nullptr;
  };

  void accept_jobs();
  void begin(jobs::AcceptedJob job);
  void interrupt_cancelled();
  void join_ended();
  void run(Run& run);
  void replicate(Run& run, const ReplicationJob& job);
  void fail(const Run& run, const ReplicationJob& job, const std::exception& error);
  void record(kv::Transaction& tx, const Run& run, const ReplicationJob& job,
              const ReplicationOutcome& outcome);
  bool must_end(const Run& run);
  void sleep(const Run& run, Duration pause);
  std::unique_ptr<Peer> open(const Endpoint& endpoint, const Replication& replication,
                             const Fence& fence) const;

  const LocalStore local_;
  jobs::Queue& queue_;
  workers::Monitor& monitor_;
  Rng& rng_;
  const ReplicatorOptions options_;

  jobs::Acceptor acceptor_;
  std::unique_ptr<workers::LocalWorker> worker_;
  MonotonicTime look_at_{};  // used by the acceptor's thread only
  std::thread acceptor_thread_;
  std::atomic<bool> stopping_ = false;
  mutable Mutex mutex_{MutexRank::replicator, "Replicator::mutex_"};  // protects the members below
  ConditionVariable changed_;
  std::list<Run> runs_;
};

}  // namespace divan::replicator
