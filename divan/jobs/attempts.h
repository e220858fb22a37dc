// The workers' side of the job queue: accepting jobs, reporting on them, and ending them.
#pragma once

#include <exception>
#include <functional>
#include <set>

#include "divan/jobs/due.h"
#include "divan/jobs/queue_core.h"

namespace divan::jobs {

struct AcceptOptions {
  std::size_t limit = 1;
  // Accept jobs that are due until then; nullopt: until now.
  std::optional<std::int64_t> max_scheduled_at;
  // The worker whose heartbeat keeps the attempts alive; its incarnation may be empty.
  std::optional<workers::WorkerRef> worker;
  // For a blocking accept: fail with no_such_job_type if a type is not declared.
  bool must_be_declared = false;
};

/// An accepted job with its data.
struct AcceptedJob {
  Job job;
  std::string data;
  Attempt attempt() const { return {job.type, job.id, job.lock}; }
};

struct Accepted {
  std::vector<AcceptedJob> jobs;
  std::optional<std::int64_t> next_due_at;  // if there are no jobs: when the next one is due
  std::set<std::string> full;               // types that have reached `max_running`
};

/// One of several accepts in one transaction.
struct AcceptRequest {
  std::size_t limit = 1;
  std::optional<workers::WorkerRef> worker{};
  bool must_exist = true;  // check its worker even if there are no jobs for it
  // Called in the transaction, before jobs are accepted, unless its worker must exist and does not. Must be
  // idempotent, and must not throw after it has written.
  std::function<void(kv::Transaction&)> first{};
  // Results: the jobs, or the error.
  std::vector<AcceptedJob> jobs{};
  std::exception_ptr error{};
};

/// Further results of accept_for().
struct ScanResult {
  bool more = false;                          // there may be more due jobs than requested
  std::optional<std::int64_t> next_due_at{};  // when the next one is due
  std::set<std::string> full{};               // types that have reached `max_running`
  std::set<std::string> undeclared{};         // types that are not declared
};

/// Receives the first kMaxOrdered due jobs of a type in queue order. Sorts them into the order of acceptance,
/// and removes those that must not be accepted now. Must be idempotent, and must not use the transaction.
using DueOrder = std::function<void(std::vector<DueJob>& due)>;
inline constexpr std::size_t kMaxOrdered = 1000;

/// accept() for several requests in one transaction: each gets jobs up to its limit before the next one does.
/// A request whose worker is not registered gets `error`. `cursors` are those of the last committed call;
/// with them, a call that has found jobs does not scan all priorities, and sets `more`.
ScanResult accept_for(QueueCore& queue, kv::Transaction& tx, std::span<const std::string> types,
                      std::optional<std::int64_t> max_scheduled_at, std::span<AcceptRequest> requests,
                      QueueCursors* cursors = nullptr, const DueOrder& order = {});

/// Accepts up to `limit` due jobs of the types, ordered across types by priority, then due time, then id.
/// The jobs run from the commit on. Types that are paused or not declared yield none, and no type yields more
/// than its `max_running` allows: of two transactions that accept jobs of a type with that setting, one
/// conflicts. Throws not_found if the worker is not registered.
Accepted accept(QueueCore& queue, kv::Transaction& tx, std::span<const std::string> types,
                const AcceptOptions& options);

/// The due jobs of a type in the order in which accept() accepts them, up to kMaxOrdered. Reads a snapshot.
std::vector<DueJob> due_jobs(QueueCore& queue, kv::Transaction& tx, std::string_view type);

/// The result of update().
struct UpdateResult {
  bool resubmit = false;  // the job runs again after this run
  bool cancel = false;    // the worker should stop
};

/// Reports that a running attempt is alive, with new data or progress (JSON) if given. Throws LockLost if the
/// attempt has lost the job; the worker must then not write on its behalf.
UpdateResult update(QueueCore& queue, kv::Transaction& tx, const Attempt& attempt,
                    std::optional<std::string_view> data = std::nullopt,
                    std::optional<std::string_view> progress = std::nullopt);

/// Ends the attempt with success: the job is finished, or cancelled if that was requested, or pending again
/// if it was resubmitted. `result` is stored beside the job's data and replaces any earlier result. `data`,
/// if given, replaces the job's data. Throws LockLost.
void finish(QueueCore& queue, kv::Transaction& tx, const Attempt& attempt,
            std::optional<std::string_view> data = std::nullopt,
            std::optional<std::string_view> progress = std::nullopt,
            std::optional<std::string_view> result = std::nullopt);

struct FailOptions {
  bool retry = true;                   // false: the job fails permanently
  std::optional<Duration> delay = {};  // until the next attempt, instead of the backoff
};
/// Ends the attempt with failure: the job is retried after a backoff that grows with its failures, or fails
/// permanently. Throws LockLost.
void fail(QueueCore& queue, kv::Transaction& tx, const Attempt& attempt, std::string_view error,
          const FailOptions& options = {});

/// Ends the running attempt of a job at its deadline, as a failure, and notifies the connection that holds
/// its worker's registration (halts.h).
void end_overdue(QueueCore& queue, kv::Transaction& tx, Job& job);

/// Returns the job to the queue, in its former position, or, with a delay, behind the jobs that are due when
/// the delay ends. Counts neither as a failure nor as an attempt. If the job is to be cancelled, it is
/// cancelled now. Throws LockLost.
void release(QueueCore& queue, kv::Transaction& tx, const Attempt& attempt,
             std::optional<Duration> delay = std::nullopt);

/// The same without the lock, for others than its worker, who is notified if a connection holds its
/// registration (halts.h). Throws conflict unless the attempt with this epoch is running.
void release_without_lock(QueueCore& queue, kv::Transaction& tx, std::string_view type, std::string_view id,
                          std::int64_t epoch, std::optional<Duration> delay = std::nullopt);

/// Leaves a worker job to others who know its lock: from now on the attempt is kept alive by reports, as one
/// that was accepted without a registered worker, and no longer by its worker's heartbeat. Throws LockLost.
void detach(QueueCore& queue, kv::Transaction& tx, const Attempt& attempt,
            std::optional<std::string_view> progress = std::nullopt);

/// Throws LockLost unless the attempt owns the job. For transactions in which the worker makes none of the
/// calls above.
void check_owned(kv::Transaction& tx, const Attempt& attempt);

/// Ends the attempt of a running job, which is `released` by its worker or `lost` (`why`): the job was
/// silent, or the registration of its worker has ended, whether evicted, removed or replaced. The job is
/// pending again, due after the delay if given; or cancelled, if that was requested; or failed, if it has
/// been lost `max_lost` times.
void reclaim(QueueCore& queue, kv::Transaction& tx, Job& job, Outcome why,
             std::optional<Duration> delay = std::nullopt);

}  // namespace divan::jobs
