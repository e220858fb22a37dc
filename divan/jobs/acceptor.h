// Waiting for jobs.
//
// Many callers of a process may wait for jobs at the same time. If each of them polled the store by itself,
// they would conflict with each other at the head of the job queue, and each added job would wake all of
// them. So the callers that want jobs of the same types, due until the same time, share a wait queue, in
// which one of them polls for all.
//
// An accept takes these steps:
//
// 1. Join. join() adds a waiter at the end of the wait queue. The caller then calls step() at once, and again
//    whenever the waiter is woken or the time that step() has returned has come.
// 2. Poll. step() polls unless another waiter of the wait queue is polling. It does so for a new waiter, if
//    there may be jobs that the last poll did not find, and if it is time to poll again. A poll is one
//    transaction for all waiters, or for as many as one transaction can accept jobs for. It scans the job
//    queue for due jobs, accepts them, and assigns them to the waiters in the order in which these joined
//    (accept_for() in attempts.h). If there are fewer jobs than the waiters request, the same transaction
//    sets watches on the types.
// 3. Distribute. After the commit, the waiters that got jobs and those whose accept failed leave the wait
//    queue. They are woken, and their next step() returns the jobs or throws the error. If the transaction
//    failed, so did the accepts of all its waiters.
// 4. Wait. The other waiters stay. The first of them polls again when a watch ends, when the next job becomes
//    due, and after five seconds at the latest, in case that a watch was lost or the store had none left.
// 5. Add. If waiters wait and none of them polls, the transaction that adds a job makes the poll itself
//    (poll_for_add()): one commit adds and accepts the job, and its waiter needs no transaction.
// 6. Leave. A caller that gives up calls leave(). If a poll may accept jobs for the waiter, leave() returns
//    false, and the waiter is woken after that poll. A caller that cannot wait for this calls abandon(): the
//    poll then releases the jobs that it accepts for the waiter.
//
// So the waiters of one wait queue never conflict with each other, an added job wakes one of them, and a
// wait queue without jobs costs one poll in five seconds. Wait queues of different processes do conflict: the
// store commits one of their transactions, and the others accept from a wider part of the job queue when they
// are retried (QueueCursor::candidate_window).
//
// Undelivered jobs. Once the transaction of a poll is committed, its jobs run, and no other worker can accept
// them. If such a job does not reach the caller, because the caller has disconnected or cannot be woken, it
// is released (release_undelivered()). If the store fails at that moment, each later step() tries again. If
// the outcome of the commit is unknown, the transaction may take effect later still, so releasing its jobs is
// tried for a minute.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>

#include "divan/base/mutex.h"
#include "divan/jobs/attempts.h"
#include "divan/jobs/queue.h"

namespace divan::jobs {

/// A set of wait queues. Thread-safe. The queue, store and clock must outlive it and all waiters.
class Acceptor {
 public:
  /// `order` decides which of the due jobs are accepted next; without it, they are accepted in queue order.
  Acceptor(Queue& queue, kv::Database& store, const Clock& clock, DueOrder order = {})
      : queue_(queue), store_(store), clock_(clock), order_(std::move(order)) {}
  /// Drops all waiters.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  /// Blocks until it has accepted at least one job; returns an empty vector if the deadline passes or
  /// interrupt() is called first. Throws as jobs::accept() does.
  std::vector<AcceptedJob> accept(std::span<const std::string> types, const AcceptOptions& options,
                                  MonotonicTime deadline);

  /// Ends the waits of present and later calls of accept(): they return the jobs of a poll that was made for
  /// them, or none. Does not block.
  void interrupt();

  /// Wakes a waiter of each wait queue to poll again, since `order` may prefer other jobs now. Does not
  /// block.
  void poll_again();

  // For callers that wait without a thread.

  class Waiter;
  /// Joins the wait queue of the types. `wake` is called, from any thread, when step() must be called, and
  /// sometimes without need; it must neither block nor call the acceptor. If it throws, the jobs that the
  /// waiter was given are released. The waiter stays in the queue until it is done, leaves or is abandoned,
  /// even if the caller drops its pointer.
  std::shared_ptr<Waiter> join(std::vector<std::string> types, const AcceptOptions& options,
                               std::function<void()> wake);

  class Poll;
  struct Step {
    bool done = false;  // the waiter has left the queue, with `jobs`
    std::vector<AcceptedJob> jobs;
    MonotonicTime poll_at = MonotonicTime::max();  // if not done: call step() at this time at the latest
    std::shared_ptr<Poll> poll;                    // see next_step()
  };
  /// Polls for jobs if it is time to and no other waiter is polling. Throws if the accept of this waiter
  /// failed; the waiter has then left the queue. Blocks during the poll.
  Step step(const std::shared_ptr<Waiter>& waiter);

  // step() in parts, for callers that must not block. None of them blocks.

  /// step(), except that the caller makes the poll: if the result has a `poll`, the caller calls run_poll()
  /// in a transaction, as kv::Database::run() calls its function, then end_poll(), whether or not the
  /// transaction has failed, and then next_step() again. A poll for several waiters requests up to about
  /// `max_jobs` jobs; with 0 it is for this waiter alone.
  Step next_step(const std::shared_ptr<Waiter>& waiter, std::size_t max_jobs = kMaxAcceptLimit);
  /// `first`, of a poll for one waiter alone: AcceptRequest::first.
  void run_poll(Poll& poll, kv::Transaction& tx, const std::function<void(kv::Transaction&)>& first = {});
  /// `failure`: of the transaction, or null.
  void end_poll(Poll& poll, std::exception_ptr failure);

  /// A poll for a transaction that adds a job of this type, or null if nobody waits for jobs of this type
  /// alone or a waiter is about to poll. The caller calls run_poll() after it has added the job, and
  /// end_add_poll() after the transaction, whether or not that has failed. The job must not depend on the
  /// poll: it is made only in the first try of the transaction, and a transaction that fails leaves the
  /// waiters as they were. Does not block.
  std::shared_ptr<Poll> poll_for_add(const std::string& type);
  /// Returns true if the transaction failed in the try that made the poll: then that may be why, and the
  /// caller adds the job without it. Does not block.
  bool end_add_poll(Poll& poll, std::exception_ptr failure);
  /// Returns true if release_undelivered() would have something to do. It blocks, and should be called before
  /// a poll, after end_poll() and after release_undelivered_later().
  bool has_undelivered();

  /// Takes the waiter out of the queue. Returns false if it may get or has got jobs: a poll for it is under
  /// way or has yet to be made, and the waiter is woken after that; or it has left the queue, and step()
  /// returns its jobs or throws.
  bool leave(const std::shared_ptr<Waiter>& waiter);

  /// Takes the waiter out of the queue at once. Returns the jobs that it was given and that step() has not
  /// returned, for release_undelivered(). A poll that is under way releases what it accepts for the waiter.
  std::vector<AcceptedJob> abandon(const std::shared_ptr<Waiter>& waiter);
  /// Releases accepted jobs that no worker has received, in a transaction each. What fails is tried again
  /// with the next step(). `outcome_unknown` is explained at release_undelivered_later().
  void release_undelivered(std::span<const AcceptedJob> jobs, bool outcome_unknown = false);
  /// Releases them with the next call of release_undelivered() or step(). Does not block. With
  /// `outcome_unknown`, the commit that accepts them may still take effect, so releasing them is tried for a
  /// minute.
  void release_undelivered_later(std::span<const AcceptedJob> jobs, bool outcome_unknown = false);

 private:
  struct WaitQueue;
  struct AcceptBatch;
  struct PollResult;

  void watch_for_jobs(Poll& poll);
  void distribute(WaitQueue& wait_queue, AcceptBatch& batch, PollResult& result);
  static std::shared_ptr<Poll> begin_poll(const std::shared_ptr<WaitQueue>& wait_queue,
                                          std::shared_ptr<Waiter> poller, std::size_t max_jobs);
  static void drop_poll(Poll& poll);
  static void wake_after_poll(WaitQueue& wait_queue, const Waiter* poller);
  static void fail_undeclared(WaitQueue& wait_queue, AcceptBatch& batch, const std::string& type);
  std::vector<std::shared_ptr<WaitQueue>> live_wait_queues();
  std::shared_ptr<WaitQueue> find_wait_queue(const std::string& name);
  QueueCursors known_cursors(std::span<const std::string> types);
  void remember(const QueueCursors& cursors);
  struct Undelivered {
    Attempt attempt;
    MonotonicTime until;  // until then the commit that accepts the job may still take effect
  };
  bool try_release(const Undelivered& undelivered);

  Queue& queue_;
  kv::Database& store_;
  const Clock& clock_;
  const DueOrder order_;

  // Protects the two members below.
  Mutex wait_queues_mutex_{MutexRank::wait_queues, "Acceptor::wait_queues_mutex_"};
  std::map<std::string, std::weak_ptr<WaitQueue>> wait_queues_;  // by types and time
  std::size_t wait_queues_left_ = 0;                             // by the last sweep

  Mutex cursors_mutex_{MutexRank::queue_cursors, "Acceptor::cursors_mutex_"};  // protects cursors_
  QueueCursors cursors_;                                                       // as the last polls left them

  Mutex undelivered_mutex_{MutexRank::undelivered_jobs,
                           "Acceptor::undelivered_mutex_"};  // protects undelivered_
  std::vector<Undelivered> undelivered_;                     // not yet released

  std::atomic<bool> interrupted_ = false;
};

}  // namespace divan::jobs
