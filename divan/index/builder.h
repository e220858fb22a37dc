// Builds indexes: accepts their jobs and brings them up to date, batch by batch.
//
// A batch is read (changes and bodies, in the order of the changes), mapped (in the sandbox, outside of any
// transaction) and written (rows, the index's new sequence and the job's progress in one transaction).
// Batches overlap: while one is written, the next ones are being mapped. The transaction that writes checks
// the job's lock, so a builder that has lost its job cannot write; and the sequence, so batches follow each
// other without gap or repetition. A build that is killed goes on where its last batch was committed.
//
// What an index keeps beside its rows (partial reductions, say) is made when they are up to date, in pieces
// that are written and fenced in the same way.
//
// A build gives its thread to a more urgent one that waits for it (builds.h), after what it has in hand; and,
// when its turn is over, to any that is as urgent. What takes long never has all threads (slots.h).
//
// When its database is deleted, a build ends at once, with the JavaScript that runs for it.
//
// A document that changes after it was read is met again further up in the changes, so the rows are right
// when the index has reached the end.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "divan/index/builds.h"
#include "divan/index/meter.h"
#include "divan/index/slots.h"
#include "divan/jobs/acceptor.h"
#include "divan/workers/monitor.h"

namespace divan::index {

struct BuilderOptions {
  std::size_t threads = 4;             // large builds at once; there are two threads more, for small ones
  std::size_t batch_documents = 2000;  // read and mapped at once
  std::size_t batch_bytes = 4 << 20;   // the same by the size of the bodies
  std::size_t batches_ahead = 3;       // mapped or being mapped while one is written, after the first one
  /// A build that has gone on for so long lets others that wait go first, if they are as urgent.
  Duration time_slice = std::chrono::seconds(10);
  Meter* meter = nullptr;  // outlives the builder
};

/// The role of the workers that do a process's own background jobs.
inline constexpr std::string_view kBackgroundRole = "_background";

/// The builders of a process. Thread-safe. All that it is given must outlive it.
class Builder {
 public:
  Builder(kv::Database& store, docs::Catalog& catalog, jobs::Queue& queue, workers::Monitor& monitor,
          const Kinds& kinds, const Clock& clock, BuilderOptions options = {});
  /// As stop(), and waits for it.
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  /// Has running jobs given back after their present batch, or at once if that cannot be mapped any more.
  void stop();

  /// Registers as a worker and begins to accept jobs. `worker_id` is unlike that of any other process on the
  /// store.
  void start(std::string_view worker_id);

  /// Takes the most urgent job of `type` that is due, for a thread that has nothing to do; if there is none,
  /// the job waits in the queue. For the transaction that asks for a build: it need not be looked for then,
  /// nor be accepted by another commit.
  void try_claim(kv::Transaction& tx, std::string_view type);

  /// How many builds run.
  std::size_t running() const { return busy_; }
  /// The builds that run, and how many large ones may.
  std::vector<RunningBuild> running_builds() const { return slots_.running(); }
  std::size_t max_large() const { return slots_.large(); }
  /// Its threads.
  std::size_t threads() const { return slots_.threads(); }

  /// One build, on the calling thread: to its end, or until stop. For the threads, and for tests.
  void run(const jobs::AcceptedJob& job);

 private:
  struct Build;
  struct Batch {
    std::vector<SourceDocument> documents;
    std::future<std::unique_ptr<MappedBatch>> mapped;
  };

  // Holds a thread for a job that is being taken.
  class Claim;

  void pause();  // a second, unless it is to stop
  void work();
  std::optional<jobs::AcceptedJob> next_job();
  std::optional<jobs::AcceptedJob> accept_job();
  workers::WorkerRef worker() const;
  // Of a job, in a row.
  struct BrokenOff {
    int count = 0;
    MonotonicTime first, last;
  };
  bool may_break_off(const Build& state, const BrokenOff& before);
  BrokenOff take_broken_off(const jobs::Attempt& attempt);
  bool is_gone(const Build& state, kv::Transaction& tx);
  void build(Build& build);
  bool begin(Build& build);
  bool finish(Build& build);
  bool finish_in(kv::Transaction& tx, const Build& build);
  bool do_more_work(Build& build, bool resume_only);
  void give_back(Build& build);
  bool others_wait(const Build& build);
  bool may_go_on(Build& build);
  void give_up(Build& build, const Error& error);
  void end_stopped(Build& build);
  Batch read_batch(Build& build, bool is_next);
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
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<std::size_t> busy_ = 0;  // builds that run
  // Of the threads that have nothing to do one waits for jobs in the queue, so that they do not fight over
  // them; the others for jobs that try_claim() has taken.
  bool accepting_ = false;
  std::size_t idle_ = 0;     // the others
  std::size_t claimed_ = 0;  // of these
  std::deque<jobs::AcceptedJob> taken_;
  std::map<std::pair<std::string, std::string>, BrokenOff> broken_off_;  // by type and id
  std::vector<std::thread> threads_;
};

}  // namespace divan::index
