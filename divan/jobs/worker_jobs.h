// Worker jobs: running jobs that were accepted in the name of a registered worker, and are kept alive by its
// heartbeat. When the worker's registration ends, their attempts end and they are pending again.
//
// A worker may have more jobs than one transaction can hold. So the transaction that ends a registration
// reclaims the first ones, and writes a row ("jobs", "left", role, worker) if there are others; the
// Maintenance of any process reclaims those later. Until then such a job still belongs to its attempt, which
// can report. A worker of the same name may be registered meanwhile and accept jobs: their epochs are at
// least the version of that row. See docs/keyspace.md.
#pragma once

#include "divan/jobs/queue_core.h"

namespace divan::jobs {

/// Called in the transaction that ends a registration: reclaims the worker's jobs, or the first of them and
/// records that there are others.
void worker_ended(QueueCore& queue, kv::Transaction& tx, std::string_view role, std::string_view id);

/// The running jobs of one type that a worker has accepted, by id, from `start_id` on. Damaged ones are
/// reported and skipped.
std::vector<Job> jobs_of_worker(QueueCore& queue, kv::Transaction& tx, std::string_view role,
                                std::string_view id, std::string_view type, std::string_view start_id,
                                std::size_t limit);

/// The entry of a worker job, as for remove_entry() (rows.h).
struct WorkerJobEntry {
  std::string_view key;
  bool in_batch = false;
};
/// Visits all worker jobs of a type: the entry, and the job's id. Damaged entries are reported and skipped.
/// Reads a snapshot.
void for_each_worker_job(QueueCore& queue, kv::Transaction& tx, std::string_view type,
                         const std::function<void(const WorkerJobEntry&, const std::string& id)>& visit);

/// Reclaims the remaining jobs of all workers that have ended. Thread-safe.
void reclaim_left(QueueCore& queue, kv::Database& store);

}  // namespace divan::jobs
