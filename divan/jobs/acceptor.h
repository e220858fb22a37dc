// Waiting for jobs.
//
// A caller that wants jobs of some types becomes a waiter in the wait queue of these types, of which the
// process has one. The path of an accept:
//
// 1. Join. join() adds the waiter at the end of the wait queue. The caller then calls step(): at first at
//    once, later whenever it is woken or the time that step() returned has come.
// 2. Poll. If no poll for the wait queue is under way, step() makes one, for all waiters at once (or as many
//    as one transaction accepts jobs for). One transaction scans the job queue for due jobs, accepts as many
//    as the waiters ask for together, and assigns them to the waiters in the order in which these joined
//    (accept_for() in attempts.h). If there are fewer jobs than the waiters ask for, the same transaction
//    sets one watch for each type.
// 3. Distribute. After the commit, waiters that got jobs, and those whose accept failed, leave the wait
//    queue. They are woken, and their next step() returns the jobs or throws.
// 4. Wait. The other waiters stay. The first of them is woken, and polls again, when a watch ends. It also
//    polls when the next job becomes due, and after a fallback interval in case that a watch was lost.
// 5. Leave. A waiter may leave() the queue unless a poll may give it jobs; then it is woken after that poll.
//    abandon() always succeeds: what the poll under way gives to the waiter is released by that poll.
//
// So the acceptors of a process do not conflict with each other at the head of the job queue, an added job
// wakes one of them, and an idle type costs nothing. Acceptors of several processes do conflict: the store
// commits the transaction of one, and the others then accept from a wider part of the queue
// (QueueCursor::candidate_window).
//
// Once a poll is committed, its jobs run. Whatever fails from then on must not lose them: jobs that do not
// reach their waiter are released (give_back()), in a later call if the store fails now.
#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>

#include "divan/base/mutex.h"
#include "divan/jobs/attempts.h"
#include "divan/jobs/queue.h"

namespace divan::jobs {

/// The wait queues of a process. Thread-safe. The queue, store and clock must outlive it and all waiters.
class Acceptor {
 public:
  /// `order` sorts the due jobs by which is accepted next; without it, the queue's order counts.
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

  /// Makes present and later calls of accept() return at once, without jobs.
  void interrupt();

  /// Polls again for all waiters: `order` may prefer other jobs now. Does not block.
  void poll_again();

  // For callers that wait without a thread.

  class Waiter;
  /// Joins the wait queue of the types. `wake` is called, from any thread, when step() must be called, and
  /// sometimes without need; it must neither block nor call the acceptor. If it throws, the jobs that the
  /// waiter was given are released. The waiter stays in the queue until it is done, leaves or is abandoned,
  /// even if the caller drops its pointer.
  std::shared_ptr<Waiter> join(std::vector<std::string> types, const AcceptOptions& options,
                               std::function<void()> wake);

  struct Step {
    bool done = false;  // the waiter has left the queue, with `jobs`
    std::vector<AcceptedJob> jobs;
    MonotonicTime poll_at = MonotonicTime::max();  // if not done: call step() at this time at the latest
  };
  /// Polls for jobs unless another waiter is polling. Throws if the accept failed for this waiter, which has
  /// then left the queue.
  Step step(const std::shared_ptr<Waiter>& waiter);

  /// Takes the waiter out of the queue. Returns false if a poll that may give it jobs is under way, or if no
  /// poll has been made for it yet; it is then woken after the next poll.
  bool leave(const std::shared_ptr<Waiter>& waiter);

  /// Takes the waiter out of the queue at once. Returns the jobs that it was given and that step() has not
  /// returned, for give_back(). The poll under way gives back what it accepts for the waiter.
  std::vector<AcceptedJob> abandon(const std::shared_ptr<Waiter>& waiter);
  /// Releases accepted jobs that no worker has received, in a transaction each. What fails is tried again
  /// with the next poll. `unsure` is explained at give_back_later().
  void give_back(std::span<const AcceptedJob> jobs, bool unsure = false);
  /// Releases them with the next call of give_back() or the next poll. Does not block. With `unsure`, the
  /// commit that accepts them may still take effect, so releasing them is tried for a minute.
  void give_back_later(std::span<const AcceptedJob> jobs, bool unsure = false);

 private:
  struct WaitQueue;
  struct AcceptBatch;
  struct PollResult;

  void poll(WaitQueue& wait_queue, std::unique_lock<Mutex>& lock, const Waiter& own);
  PollResult accept_for_all(WaitQueue& wait_queue, std::vector<AcceptRequest>& requests);
  void distribute(WaitQueue& wait_queue, AcceptBatch& batch, PollResult& result);
  void wake_after_poll(WaitQueue& wait_queue, const Waiter& own);
  static void fail_undeclared(WaitQueue& wait_queue, AcceptBatch& batch, const std::string& type);
  std::vector<std::shared_ptr<WaitQueue>> used_wait_queues();
  QueueCursors known_cursors(std::span<const std::string> types);
  void remember(const QueueCursors& cursors);
  struct Unwanted {
    Attempt attempt;
    MonotonicTime until;  // until then the commit that accepts it may still take effect
  };
  bool release_unwanted(const Unwanted& unwanted);

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

  Mutex unwanted_mutex_{MutexRank::unwanted_jobs, "Acceptor::unwanted_mutex_"};  // protects unwanted_
  std::vector<Unwanted> unwanted_;  // accepted, received by no worker, and not yet released

  std::atomic<bool> interrupted_ = false;
};

}  // namespace divan::jobs
