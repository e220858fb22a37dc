// Waiting for jobs.
//
// The path of an accept. A caller that wants jobs of some types joins the wait queue of these types, of which
// the process has one, and calls step(). If nobody is polling for that queue at the moment, the caller polls
// for everyone in it: one transaction accepts what is due, up to what all of them ask for, and hands it out
// in the order in which they came (accept_for() in attempts.h). Those who got jobs leave the queue. If there
// were fewer jobs than they ask for, the same transaction sets one watch for each type, which stands for all
// who still wait; its end, the time at which the next job is due, and a fallback timer wake the first of
// them, which polls again.
//
// So the acceptors of a process do not conflict with each other at the head of the job queue, an added job
// wakes one of them, and an idle type costs nothing. Acceptors of several processes do conflict; the store
// lets one of them win, and the others then accept from a wider part of the queue
// (QueueCursor::candidate_window).
//
// After the commit of a poll, its jobs run. Whatever fails from then on, a waiter that is gone included, must
// not lose them: they are released again (give_back()).
#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "divan/jobs/attempts.h"

namespace divan::jobs {

/// The wait queues of a process. Thread-safe. The queue, store and clock must outlive it and all waiters.
class Acceptor {
 public:
  /// `order` says which of the due jobs are accepted next; without it, those at the queue's front.
  Acceptor(Queue& queue, kv::Database& store, const Clock& clock, DueOrder order = {})
      : queue_(queue), store_(store), clock_(clock), order_(std::move(order)) {}
  /// Drops those who still wait.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  /// Blocks until it has accepted at least one job; returns an empty vector if the deadline passes or
  /// interrupt() is called first. Throws as jobs::accept() does.
  std::vector<AcceptedJob> accept(std::span<const std::string> types, const AcceptOptions& options,
                                  MonotonicTime deadline);

  /// Makes present and later calls of accept() return without jobs, at once.
  void interrupt();

  /// Polls again for all who wait: `order` may have other jobs for them now. Does not block.
  void poll_again();

  // For callers that wait without a thread.

  class Waiter;
  /// Joins the wait queue of the types. `wake` is called, from any thread, whenever step() is to be called;
  /// it must neither block nor call back. If it throws, the waiter loses the jobs that it was given. The
  /// waiter stays until it is done, leaves or is abandoned, even if nobody holds it any more.
  std::shared_ptr<Waiter> join(std::vector<std::string> types, const AcceptOptions& options,
                               std::function<void()> wake);

  struct Step {
    bool done = false;  // the waiter has left the queue, with `jobs`
    std::vector<AcceptedJob> jobs;
    MonotonicTime poll_at = MonotonicTime::max();  // if not done: call step() then at the latest
  };
  /// Polls for jobs unless another waiter is polling. Throws if the accept failed for this waiter, which has
  /// then left the queue.
  Step step(const std::shared_ptr<Waiter>& waiter);

  /// Takes the waiter out of the queue. Returns false if a poll that may give it jobs is under way, or none
  /// has been made for it yet: then it will be woken.
  bool leave(const std::shared_ptr<Waiter>& waiter);

  /// Takes the waiter out of the queue at once. Returns the jobs that it was given and did not take, for
  /// give_back(); jobs of a poll that is under way are given back by that poll.
  std::vector<AcceptedJob> abandon(const std::shared_ptr<Waiter>& waiter);
  /// Releases accepted jobs that nobody works on, in a transaction each. What fails is tried again later.
  void give_back(std::span<const AcceptedJob> jobs, bool unsure = false);
  /// Releases them with the next call of give_back() or the next poll. Does not block. `unsure`: the commit
  /// that accepted them may still come; releasing them is tried for a minute.
  void give_back_later(std::span<const AcceptedJob> jobs, bool unsure = false);

 private:
  struct WaitQueue;
  struct AcceptBatch;
  struct PollResult;

  void poll(WaitQueue& wait_queue, std::unique_lock<std::mutex>& lock, const Waiter& own);
  PollResult accept_for_all(WaitQueue& wait_queue, std::vector<AcceptRequest>& requests);
  void distribute(WaitQueue& wait_queue, AcceptBatch& batch, PollResult& result);
  static void fail_undeclared(WaitQueue& wait_queue, AcceptBatch& batch, const std::string& type);
  std::vector<std::shared_ptr<WaitQueue>> used_wait_queues();
  QueueCursors known_cursors(std::span<const std::string> types);
  void remember(const QueueCursors& cursors);
  struct Unwanted {
    Attempt attempt;
    MonotonicTime until;  // until then the commit that accepted it may still come
  };
  bool release_unwanted(const Unwanted& unwanted);

  Queue& queue_;
  kv::Database& store_;
  const Clock& clock_;
  const DueOrder order_;

  std::mutex wait_queues_mutex_;
  std::map<std::string, std::weak_ptr<WaitQueue>> wait_queues_;  // by types and time
  std::size_t wait_queues_left_ = 0;                             // by the last sweep

  std::mutex cursors_mutex_;
  QueueCursors cursors_;  // as the last polls left them

  std::mutex unwanted_mutex_;
  std::vector<Unwanted> unwanted_;  // accepted, nobody works on them, and not yet released

  std::atomic<bool> interrupted_ = false;
};

}  // namespace divan::jobs
