// Waiting for jobs.
//
// Those of a process who wait for jobs of the same types stand in a line. Whoever comes to look, because it
// is new or because something happened, looks for the whole line: one transaction takes what there is and
// deals it out in the order in which they came, and if that is less than they ask for, one set of watches
// stands for all of them. So the acceptors of a process do not fight over the head of the queue, an added job
// wakes one of them, and a type that nobody adds to costs nothing. (Those of several processes do conflict;
// the store sees to it that one of them wins.)
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "divan/jobs/attempts.h"

namespace divan::jobs {

/// The lines of a process. Thread-safe. The queue, store and clock must outlive it and all who wait.
class Acceptor {
 public:
  /// `order`: which of the due jobs are accepted next; by default those at the queue's front.
  Acceptor(Queue& queue, kv::Database& store, const Clock& clock, DueOrder order = {})
      : queue_(queue), store_(store), clock_(clock), order_(std::move(order)) {}
  /// Forgets who still waits.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  /// Blocks until it has accepted at least one job, or the deadline has passed or interrupt() was called:
  /// then nothing. Wakes when jobs are added, when scheduled ones become due and when places become free, not
  /// by polling. Throws as jobs::accept() does.
  std::vector<AcceptedJob> accept(std::span<const std::string> types, const AcceptOptions& options,
                                  MonotonicTime deadline);

  /// Makes present and later calls of accept() answer nothing at once.
  void interrupt();

  /// Looks again for those who wait: the order may have other jobs for them now. Thread-safe, does not block.
  void look_again();

  // For those who wait without a thread.

  class Waiter;
  /// Stands in line. `wake` is called, from any thread, whenever step() may have more to say; it must neither
  /// block nor call back. If it throws, the waiter loses what it was given. It waits until it is done, leaves
  /// or is abandoned, even if nobody holds it any more.
  std::shared_ptr<Waiter> join(std::vector<std::string> types, const AcceptOptions& options,
                               std::function<void()> wake);

  struct Step {
    bool done = false;                             // the waiter is out of the line, with
    std::vector<AcceptedJob> jobs;                 // these; otherwise it waits,
    MonotonicTime look_at = MonotonicTime::max();  // and step() is to be called then at the latest
  };
  /// Looks for jobs if nobody else does at the moment. Throws what kept the waiter from accepting; it is out
  /// of the line then.
  Step step(const std::shared_ptr<Waiter>& waiter);

  /// Takes the waiter out of the line; false if it is just being given jobs, or nobody has looked for it yet:
  /// it will be woken.
  bool leave(const std::shared_ptr<Waiter>& waiter);

  /// The same for good, and at once. Answers jobs that it was given and nobody took, for give_back(); those
  /// that it is just being given go back by themselves.
  std::vector<AcceptedJob> abandon(const std::shared_ptr<Waiter>& waiter);
  /// Releases jobs that were accepted and nobody works on, in a transaction each. Those that the store
  /// does not take now are given back later.
  void give_back(std::span<const AcceptedJob> jobs, bool unsure = false);
  /// The same with the next call of give_back(), or when somebody looks for jobs. Does not block. With
  /// `unsure`, the commit that accepted them may be made later than that, if at all: they are tried for a
  /// minute.
  void give_back_later(std::span<const AcceptedJob> jobs, bool unsure = false);

 private:
  struct Line;
  struct Party;
  struct Seen;

  void look(Line& line, std::unique_lock<std::mutex>& lock, const Waiter& own);
  Seen ask(Line& line, std::vector<Taker>& takers);
  void deal_out(Line& line, Party& party, Seen& seen);
  static void tell_of_undeclared(Line& line, Party& party, const std::string& type);
  QueueHeads known_heads(std::span<const std::string> types);
  void remember(const QueueHeads& heads);
  struct Unwanted {
    Attempt attempt;
    MonotonicTime until;  // it may be accepted yet
  };
  bool release_unwanted(const Unwanted& unwanted);

  Queue& queue_;
  kv::Database& store_;
  const Clock& clock_;
  const DueOrder order_;

  std::mutex lines_mutex_;
  std::map<std::string, std::weak_ptr<Line>> lines_;  // by types and time
  std::size_t lines_left_ = 0;                        // by the last sweep

  std::mutex heads_mutex_;
  QueueHeads heads_;  // as the last looks left them

  std::mutex unwanted_mutex_;
  std::vector<Unwanted> unwanted_;  // nobody works on them, and they are not given back yet

  // Shared with callbacks that may come when this object has gone.
  struct Interrupt {
    std::mutex mutex;
    std::condition_variable changed;
    bool interrupted = false;
  };
  std::shared_ptr<Interrupt> interrupt_ = std::make_shared<Interrupt>();
};

}  // namespace divan::jobs
