// Jobs that ride on a worker: accepted in its name, they live by its heartbeat. When the worker ends, so do
// their attempts, and they are pending again.
//
// There may be more of them than a transaction can hold. So the transaction in which a worker ends reclaims
// the first ones, and notes under ("jobs", "left", role, worker) that there are others; they are reclaimed
// after it, by whoever comes first. Until its turn comes such a job is still its attempt's and nobody else's.
// A worker of the same name may be registered meanwhile and accept jobs: theirs have an epoch that is not
// below the note's version. docs/keyspace.md
#pragma once

#include "divan/jobs/queue.h"

namespace divan::jobs {

/// A worker ends in this transaction: its jobs are reclaimed, or the first of them are and the rest is
/// noted.
void worker_ended(Queue& queue, kv::Transaction& tx, std::string_view role, std::string_view id);

/// The running jobs of one type that a worker accepted, in the order of their ids, from `start_id` on.
/// Damaged ones are reported and left out.
std::vector<Job> jobs_of_worker(Queue& queue, kv::Transaction& tx, std::string_view role, std::string_view id,
                                std::string_view type, std::string_view start_id, std::size_t limit);

/// The entries of all running jobs of a type that ride on workers, and their ids: nullopt where the key is
/// damaged. Reads a snapshot.
void for_each_riding(kv::Transaction& tx, std::string_view type,
                     const std::function<void(std::string_view key, std::optional<std::string> id)>& visit);

/// Takes back all jobs that are noted. Thread-safe.
void reclaim_left(Queue& queue, kv::Database& store);

}  // namespace divan::jobs
