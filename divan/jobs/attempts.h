// The workers' side of the job queue: accepting jobs, keeping them, and ending them.
#pragma once

#include <exception>
#include <functional>
#include <set>

#include "divan/jobs/due.h"
#include "divan/jobs/queue.h"

namespace divan::jobs {

struct AcceptOptions {
  std::size_t limit = 1;
  std::optional<std::int64_t> max_scheduled_at;  // jobs due until then; default: now
  std::optional<workers::WorkerRef>
      worker;                     // whose heartbeat is to speak for the jobs; incarnation may be empty
  bool must_be_declared = false;  // who waits is told when a type is not: no_such_job_type
};

/// An accepted job with its data.
struct AcceptedJob {
  Job job;
  std::string data;
  Attempt attempt() const { return {job.type, job.id, job.lock}; }
};

struct Accepted {
  std::vector<AcceptedJob> jobs;
  std::optional<std::int64_t> next_due_at;  // without jobs: when the next one is due
  std::set<std::string> full;               // types of which as many run as may now
};

/// Somebody who accepts jobs in a transaction, beside others.
struct Taker {
  std::size_t limit = 1;
  std::optional<workers::WorkerRef> worker{};
  bool must_exist = true;  // whether its worker is asked for even if there are no jobs for it
  // What it gets: jobs, or why it gets none.
  std::vector<AcceptedJob> jobs{};
  std::exception_ptr error{};
};

/// What deal() leaves.
struct Found {
  bool more = false;                          // there may be more jobs than the takers could take
  std::optional<std::int64_t> next_due_at{};  // when the next one is due
  std::set<std::string> full{};               // types of which as many run as may
  std::set<std::string> undeclared{};         // types that there are not
};

/// Is given due jobs of a type in the order of the queue, the first kMaxOrdered; puts them into the order in
/// which they are to be accepted, and removes those that are not to be accepted now. Must be idempotent, and
/// must not use the transaction.
using DueOrder = std::function<void(std::vector<DueJob>& due)>;
inline constexpr std::size_t kMaxOrdered = 1000;

/// accept() for several: each gets what there is up to its limit before the next one does. A taker whose
/// worker is not registered gets `error`. With `heads`, which are what the last committed call left there, it
/// does not look at all priorities at once when it has found jobs: `more` says so.
Found deal(Queue& queue, kv::Transaction& tx, std::span<const std::string> types,
           std::optional<std::int64_t> max_scheduled_at, std::span<Taker> takers, QueueHeads* heads = nullptr,
           const DueOrder& order = {});

/// Takes up to `limit` due jobs of the types: over all of them by priority, then by time, then by age. The
/// jobs run from the commit on. Types that are not declared or paused have none, and no type has more than
/// its `max_running` leaves: of two transactions that accept jobs of a type with that setting, one conflicts.
/// Throws not_found if the worker is not registered.
Accepted accept(Queue& queue, kv::Transaction& tx, std::span<const std::string> types,
                const AcceptOptions& options);

/// The due jobs of a type in the order in which accept() takes them, up to kMaxOrdered. Reads a snapshot.
std::vector<DueJob> due_jobs(Queue& queue, kv::Transaction& tx, std::string_view type);

/// What update() found.
struct UpdateAnswer {
  bool resubmit = false;  // the job will run again after this run
  bool cancel = false;    // it should stop
};

/// A sign of life of a running attempt, with new data or progress (JSON) if given. Throws halt if the attempt
/// has lost the job; then nothing may be written on its behalf.
UpdateAnswer update(Queue& queue, kv::Transaction& tx, const Attempt& attempt,
                    std::optional<std::string_view> data = std::nullopt,
                    std::optional<std::string_view> progress = std::nullopt);

/// The attempt has done its job: it is finished (or cancelled, if that was asked for), or, when it was
/// resubmitted, pending again. `result` is kept beside the job's data; without it there is none. `data`, if
/// given, are the job's data from now on. With a last progress, if given. Throws halt.
void finish(Queue& queue, kv::Transaction& tx, const Attempt& attempt,
            std::optional<std::string_view> data = std::nullopt,
            std::optional<std::string_view> progress = std::nullopt,
            std::optional<std::string_view> result = std::nullopt);

struct FailOptions {
  bool retry = true;                   // false: this was the last attempt of the run
  std::optional<Duration> delay = {};  // until the next one, instead of the type's or job's backoff
};
/// The attempt failed: the job runs again after a pause that grows with its failures, or is failed for good.
/// Throws halt.
void fail(Queue& queue, kv::Transaction& tx, const Attempt& attempt, std::string_view error,
          const FailOptions& options = {});

/// Ends the running attempt of a job that has a deadline, as a failure, and tells the connection that holds
/// its worker's registration (halts.h).
void end_overdue(Queue& queue, kv::Transaction& tx, Job& job);

/// Gives the job back: it is pending in the place that it had, or, with a delay, due when that is over and
/// behind the jobs that are due then. Neither counts as a failure or as an attempt. Throws halt.
void release(Queue& queue, kv::Transaction& tx, const Attempt& attempt,
             std::optional<Duration> delay = std::nullopt);

/// Throws halt unless the attempt has the job: for what its worker does beside the calls above.
void check_owned(kv::Transaction& tx, const Attempt& attempt);

/// Makes a running job pending again because nobody runs it any more, or, when that was its last lost
/// attempt, failed. With a delay, it is due after that.
void take_back(Queue& queue, kv::Transaction& tx, Job& job, Outcome why,
               std::optional<Duration> delay = std::nullopt);

}  // namespace divan::jobs
