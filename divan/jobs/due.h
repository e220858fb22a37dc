// The pending jobs of a type that are due, in the order in which they run.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "divan/jobs/rows.h"

namespace divan::jobs {

/// How far a type's queue has been looked through. Of each priority that has none but later jobs, a look
/// reads the first one; with many such priorities that is what it costs. So whoever looks again and again
/// remembers them: while no other job becomes pending there is nothing due before `begin` until
/// `next_due_at`.
struct QueueHead {
  std::optional<std::string> wakes{};         // the type's counter of jobs that became pending
  std::string begin{};                        // a key of the queue
  std::optional<std::int64_t> next_due_at{};  // the first job before it
  // Where other nodes take jobs of the type at the same time, those of one priority are not taken from the
  // very front, but from somewhere among this many times as many as are wanted. At least 1.
  std::size_t spread = 1;
};
/// By type.
using QueueHeads = std::map<std::string, QueueHead, std::less<>>;

/// A due job's place in its queue, and its name there. Places compare over all types.
struct DueJob {
  std::int64_t priority = 0;
  std::int64_t due_at = 0;
  std::string id;
  std::string key;  // of its entry in the queue

  bool is_before(const DueJob& other) const {
    return std::tie(priority, due_at, id) < std::tie(other.priority, other.due_at, other.id);
  }
};

struct DueScan {
  std::vector<DueJob> jobs;
  QueueHead head;    // once these do not wait any more
  bool cut = false;  // there may be more behind them
};

class Queue;

/// Reads the queue of a type for one transaction, as snapshots: acceptors would fight over the head of the
/// queue, so what they look at does not conflict, and what they take does. An entry that cannot be read is
/// reported and left out.
class DueScanner {
 public:
  /// Behind due jobs it goes over up to `most_behind` priorities that have none.
  DueScanner(Queue& queue, kv::Transaction& tx, std::string_view type, std::int64_t due_until,
             std::size_t most_behind);

  /// The beginning of the keys of pending jobs.
  static JobKey all(std::string_view type) { return JobKey("pend").string(type).integer(kShard); }

  /// Jobs of the first priorities first, skipping what is not due yet in each, from the given head on: up to
  /// `limit`; of the first priority, if that has so many, up to `window`.
  DueScan scan(std::size_t limit, std::size_t window, const QueueHead& head);

  /// Later scans leave the job out.
  void leave_out(const DueJob& job) { left_out_.insert(job.key); }
  std::size_t left_out() const { return left_out_.size(); }

 private:
  kv::KeyRange priority_range(std::int64_t priority) const {
    return JobKey(prefix_).integer(priority).range();
  }
  std::optional<DueJob> parse(std::string_view key);
  // Up to the first job that is not due; returns its priority.
  std::optional<std::int64_t> scan_some(const kv::KeyRange& range, std::size_t limit, std::size_t window,
                                        DueScan& found);

  Queue& queue_;
  kv::Transaction& tx_;
  const JobKey prefix_;
  const std::int64_t due_until_;
  const std::size_t most_behind_;
  std::set<std::string, std::less<>> left_out_;
};

}  // namespace divan::jobs
