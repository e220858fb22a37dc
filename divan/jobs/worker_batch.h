// Batches: running jobs of a worker that share an entry.
//
// A worker that accepts many jobs at once would write an entry for each of them, and clear it when the job
// ends. Instead, all but the first are in a batch: one row with their names, and a counter of those that are
// running. A worker has a few batches, whose rows are overwritten when no job of the last accept that used
// them runs any more; while all are in use, jobs have entries of their own. The row keeps the names of jobs
// that have ended: which of them are in the batch is in their headers. See docs/keyspace.md.
#pragma once

#include <functional>

#include "divan/jobs/queue_core.h"
#include "divan/jobs/rows.h"

namespace divan::jobs {

/// The batch of the jobs that a request accepts for a worker. Not thread-safe; belongs to a transaction.
class WorkerBatch {
 public:
  /// `first` is the batch that is tried first, from choose(). Concurrent accepts of a worker that choose the
  /// same one conflict.
  explicit WorkerBatch(std::int64_t first) : first_(first) {}
  static std::int64_t choose(Rng& rng);

  /// Returns the batch of the next accepted job, for Job::batch; 0 if it has an entry of its own.
  std::int64_t add(kv::Transaction& tx, const workers::WorkerRef& worker, const Job& job);
  /// Writes the names of the jobs. Called once, after the last add().
  void write(kv::Transaction& tx, const workers::WorkerRef& worker) const;

  /// Adds what add() reads to a prefetch.
  static void prefetch(kv::Prefetch& reads, const workers::WorkerRef& worker, std::int64_t first);

 private:
  std::int64_t find_free(kv::Transaction& tx, const workers::WorkerRef& worker) const;

  std::int64_t first_;
  std::size_t jobs_ = 0;
  std::int64_t number_ = 0;  // 0: none
  std::string names_;
};

/// Types and ids.
using JobNames = std::vector<std::pair<std::string, std::string>>;

/// A batch in the store.
struct StoredBatch {
  std::string role;
  std::string worker;
  std::int64_t number = 0;
  std::int64_t running = 0;  ///< number of jobs in it, or more
  /// Types and ids of the jobs with which it began; empty if none is running.
  JobNames jobs{};

  bool has(const Job& job) const {
    return is_in_batch(job) && job.batch == number && job.worker_role == role && job.worker_id == worker;
  }
  std::string count_key() const { return batch_count_key(role, worker, number); }
  std::string names_key() const { return batches_key(role, worker).integer(number).key(); }
};

/// The batch, without its jobs, of the key of one of its rows; nullopt if the key is damaged.
std::optional<StoredBatch> parse_batch_key(std::string_view key);

/// Decodes the names in a batch; nullopt if they are damaged.
std::optional<JobNames> decode_batch(std::string_view names);

/// Visits the batches in a range. Damaged rows are reported and skipped.
void visit_batches(QueueCore& queue, kv::Transaction& tx, const kv::KeyRange& range, kv::Isolation isolation,
                   const std::function<void(StoredBatch)>& visit);

/// Removes the rows of a batch in which no job is running. A concurrent accept that uses it conflicts.
void remove_batch(kv::Transaction& tx, const StoredBatch& batch);

}  // namespace divan::jobs
