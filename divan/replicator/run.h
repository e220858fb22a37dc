// An attempt at a replication, which works in turns and waits between them without a thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "divan/jobs/acceptor.h"
#include "divan/jobs/attempts.h"
#include "divan/replicator/local_peer.h"
#include "divan/replicator/remote_peer.h"
#include "divan/replicator/replication_document.h"
#include "divan/replicator/transfer.h"

namespace divan::replicator {

/// What all attempts of a process share. All references outlive them.
struct RunContext {
  const LocalStore& local;
  jobs::Queue& queue;
  Rng& rng;
  jobs::Acceptor& acceptor;  ///< of the jobs
  /// Opens a remote endpoint: connect() with the arguments that are missing here.
  std::function<std::unique_ptr<Peer>(const Endpoint&, const RemoteOptions&,
                                      const std::atomic<bool>& stopped)>
      connect;
};

/// All writes into local databases, documents and checkpoints, check in their transaction that the attempt
/// still owns the job. So of two processes that believe to run the same replication, only one writes. Used by
/// one thread at a time, except interrupt().
class Run {
 public:
  /// `wake` is called, on any thread and perhaps after the end of the run, when it should have a turn. It
  /// must be quick.
  Run(const RunContext& context, jobs::AcceptedJob job, const RemoteOptions& remote,
      std::function<void()> wake);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  const jobs::AcceptedJob& job() const { return job_; }
  /// Runs with the same group share a limit of threads: those of one replicator database, or of POST
  /// /_replicate. Retries after a failure are separate groups, since their peers may be slow.
  std::string group() const;

  enum class State {
    ready,  ///< wants another turn
    waits,  ///< until it is woken, or `wake_at`
    ended,  ///< the job belongs to this attempt no more
  };
  struct Turn {
    State state = State::ended;
    MonotonicTime wake_at{};
  };
  /// Works until there is nothing more to do, or until `end` if there is.
  Turn work(MonotonicTime end);

  /// Makes the present turn end soon, and the next one begin by looking at the job: it ends the run, since
  /// the job is to be cancelled, run again or released.
  void interrupt() { interrupted_ = true; }
  bool interrupted() const { return interrupted_; }

 private:
  void begin();
  std::unique_ptr<Peer> open(const Endpoint& endpoint);
  Turn work_on(MonotonicTime end);
  Turn wait();
  void report();
  void end();
  void fail(const std::exception& error);
  void release();
  void record(kv::Transaction& tx, const ReplicationOutcome& outcome);
  MonotonicTime now() const { return context_.local.clock.now(); }

  const RunContext context_;
  const jobs::AcceptedJob job_;
  const jobs::Attempt attempt_;
  const RemoteOptions remote_;
  const std::function<void()> wake_;
  std::optional<Error> invalid_;  // the job's data are no replication
  ReplicationJob request_;
  std::atomic<bool> interrupted_ = false;

  std::unique_ptr<Peer> source_;
  std::unique_ptr<Peer> target_;
  std::optional<Transfer> transfer_;  // null before the first turn
  MonotonicTime report_at_{};
  std::string reported_;       // sequences
  std::int64_t checked_ = -1;  // revisions
  bool is_watching_ = false;
  MonotonicTime early_until_{};  // a wake without changes before is too early
  Duration pause_{};
  std::unique_ptr<PeerWatch> source_watch_;
  std::unique_ptr<PeerWatch> target_watch_;
};

}  // namespace divan::replicator
