// Builds indexes: accepts their jobs and brings the indexes up to date, batch by batch.
//
// A batch is read (changes and bodies, in the order of the changes), mapped (in the sandbox, outside of
// transactions) and written (rows, the index's new sequence and the job's progress in one transaction).
// Batches overlap: while one is being written, the next ones are being mapped. The transaction that writes
// checks the job's lock, so that a builder that has lost its job cannot write; and the sequence, so that
// batches are written in order, without omission or repetition. A build that is killed resumes after its last
// committed batch.
//
// Other data of an index (partial reductions, for example) are written when its rows are up to date, in
// pieces that are written and fenced in the same way.
//
// A build yields its thread to a more urgent pending one (builds.h) after the batches in memory; and, after
// its time slice, to any equally urgent one. Long builds never occupy all threads (slots.h).
//
// When its database is deleted, a build ends at once, and so does its running JavaScript.
//
// An index whose database changes all the time is not left at once when it is up to date (wait_for_changes).
//
// A document that changes after it was read is read again later in the changes, so that the rows are correct
// when the index has reached the end.
#pragma once

#include <atomic>
#include <deque>
#include <future>
#include <map>
#include <thread>

#include "divan/base/mutex.h"
#include "divan/index/builds.h"
#include "divan/index/meter.h"
#include "divan/index/slots.h"
#include "divan/jobs/acceptor.h"
#include "divan/workers/monitor.h"

namespace divan::index {

struct BuilderOptions {
  std::size_t threads = 4;             // maximum number of large builds; small ones have two more threads
  std::size_t batch_documents = 2000;  // maximum size of a batch
  std::size_t batch_bytes = 4 << 20;   // the same, in bytes of bodies
  /// Maximum number of batches that are mapped or being mapped. Only one is, until it has been written. 1:
  /// each batch is mapped by the thread that writes it.
  std::size_t batches_ahead = 3;
  /// A build that has run for this long yields to equally urgent ones.
  Duration time_slice = std::chrono::seconds(10);
  /// How long a build that has caught up waits for more changes before it ends, if its index allows small
  /// builds (index.h): such an index has a job only if changes come all the time, and each run of the job
  /// takes two commits more.
  Duration wait_for_changes = Duration(0);
  Meter* meter = nullptr;  // may be null; must outlive the builder
};

struct Build;

/// The role of the workers that run a process's own background jobs.
inline constexpr std::string_view kBackgroundRole = "_background";

/// Runs the builds of a process on its own threads. Thread-safe. All arguments must outlive it. It has a
/// condition variable instead of a Notifier, which supports only one waiting thread.
class Builder final : public JobClaimer {
 public:
  Builder(kv::Database& store, docs::Catalog& catalog, jobs::Queue& queue, workers::Monitor& monitor,
          const Kinds& kinds, const Clock& clock, BuilderOptions options = {});
  /// Calls stop(), and waits for the threads.
  ~Builder() override;
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  /// Releases running jobs after their current batch, or at once if that can no longer be mapped. Idempotent.
  void stop();

  /// Registers as a worker and begins to accept jobs. `worker_id` must be unique among the store's processes.
  void start(std::string_view worker_id);

  void try_claim(kv::Transaction& tx, std::string_view type) override;

  /// The number of running builds.
  std::size_t running() const { return busy_; }
  /// The running builds, and the maximum number of large ones.
  std::vector<RunningBuild> running_builds() const { return slots_.running(); }
  std::size_t max_large() const { return slots_.large(); }
  /// The number of threads.
  std::size_t threads() const { return slots_.threads(); }

  /// Runs one build on the calling thread until it ends or stop() is called. For the threads, and for tests.
  void run(const jobs::AcceptedJob& job);

 private:
  struct Batch {
    std::vector<SourceDocument> documents;
    std::future<std::unique_ptr<MappedBatch>> mapped;
  };

  void end_claim(std::optional<jobs::AcceptedJob>& job, const kv::CommitOutcome& outcome);
  void pause();  // for a second, unless stopping
  void work();
  std::optional<jobs::AcceptedJob> next_job();
  std::optional<jobs::AcceptedJob> accept_job();
  workers::WorkerRef worker() const;
  // Consecutive interruptions of a job.
  struct Interruptions {
    int count = 0;
    MonotonicTime first, last;
  };
  bool may_interrupt(const Build& state, const Interruptions& before);
  Interruptions take_interruptions(const jobs::Attempt& attempt);
  bool is_database_deleted(const Build& state, kv::Transaction& tx);
  void build(Build& build);
  bool begin(Build& build);
  bool may_wait(const Build& build) const;
  bool await_change(Build& build, std::optional<events::Subscription>& changes);
  bool finish(Build& build);
  bool finish_in(kv::Transaction& tx, const Build& build);
  bool run_more_work(Build& build, bool resume_only);
  void release(Build& build);
  bool should_yield(const Build& build);
  bool may_continue(Build& build);
  void fail(Build& build, const std::exception& error);
  void end_stopped(Build& build);
  Batch read_batch(Build& build, bool is_next, bool is_alone);
  std::unique_ptr<MappedBatch> map(const Index& index, const std::string& database,
                                   std::span<const SourceDocument> documents) const;
  bool write_batch(Build& build, Batch& batch, bool is_last);
  void write_rows(Build& build, MappedBatch& mapped, std::span<const SourceDocument> documents, bool is_last);
  void write(Build& build, const std::function<void(kv::Transaction&, Build&)>& work);

  kv::Database& store_;
  docs::Catalog& catalog_;
  jobs::Queue& queue_;
  workers::Monitor& monitor_;
  const Kinds& kinds_;
  const Clock& clock_;
  const BuilderOptions options_;

  Slots slots_;
  jobs::Acceptor acceptor_;
  std::unique_ptr<workers::LocalWorker> worker_;
  std::atomic<bool> stopping_ = false;
  Mutex mutex_{MutexRank::builder, "Builder::mutex_"};  // protects the members below
  ConditionVariable changed_;
  std::atomic<std::size_t> busy_ = 0;  // running builds
  // One of the idle threads polls the queue, so that they do not compete for jobs; the others wait for jobs
  // that try_claim() has accepted.
  bool accepting_ = false;
  std::size_t idle_ = 0;     // idle threads, without the one that polls
  std::size_t claimed_ = 0;  // idle threads that are claimed by open transactions
  std::deque<jobs::AcceptedJob> claimed_jobs_;
  std::map<std::pair<std::string, std::string>, Interruptions> interruptions_;  // by type and id
  std::vector<std::thread> threads_;
};

}  // namespace divan::index
