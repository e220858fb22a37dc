// The pending jobs of a type that are due, in the order in which they run.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "divan/jobs/rows.h"

namespace divan::jobs {

/// How far a type's queue has been scanned. A scan reads the first job of each priority whose jobs are all
/// due later, which is expensive with many such priorities. A caller that scans repeatedly keeps the cursor:
/// while no other job becomes pending, no job before `begin` is due until `next_due_at`.
struct QueueCursor {
  std::optional<std::string> wakes{};         // the type's counter of jobs that became pending
  std::string begin{};                        // a key of the queue
  std::optional<std::int64_t> next_due_at{};  // of the first job before it
  // If other nodes accept jobs of the type at the same time, jobs of one priority are accepted from a random
  // part of a window at the front of the queue. It has this many times as many jobs as are requested. At
  // least 1.
  std::size_t candidate_window = 1;
};
/// By type.
using QueueCursors = std::map<std::string, QueueCursor, std::less<>>;

/// A due job's position in its queue. Positions compare across types.
struct DueJob {
  std::int64_t priority = 0;
  std::int64_t due_at = 0;
  std::string id;
  std::string key;       // of its entry in the queue
  std::string header{};  // the copy in that entry; empty in entries of older versions

  bool is_before(const DueJob& other) const {
    return std::tie(priority, due_at, id) < std::tie(other.priority, other.due_at, other.id);
  }
};

struct DueScan {
  std::vector<DueJob> jobs;
  QueueCursor cursor;  // valid once these jobs are not pending any more
  bool cut = false;    // there may be more due jobs
};

class QueueCore;

/// Scans the queue of a type in one transaction. Uses snapshot reads, so that scanned jobs do not conflict;
/// otherwise all acceptors would contend for the head of the queue. Accepted jobs do conflict. A damaged
/// entry is reported and skipped.
class DueScanner {
 public:
  /// After due jobs, a scan passes at most `most_behind` priorities without due jobs.
  DueScanner(QueueCore& queue, kv::Transaction& tx, std::string_view type, std::int64_t due_until,
             std::size_t most_behind);

  /// The prefix of the keys of pending jobs.
  static JobKey all(std::string_view type) { return JobKey("pend").string(type).integer(kShard); }

  /// Returns due jobs by priority from the cursor on, skipping those of each priority that are not due yet:
  /// up to `limit`, or up to `window` if the first priority has that many.
  DueScan scan(std::size_t limit, std::size_t window, const QueueCursor& cursor);

  /// Later scans skip the job.
  void skip(const DueJob& job) { skipped_.insert(job.key); }
  std::size_t skipped() const { return skipped_.size(); }

 private:
  kv::KeyRange priority_range(std::int64_t priority) const {
    return JobKey(prefix_).integer(priority).range();
  }
  std::optional<DueJob> parse(std::string_view key, std::string_view header);
  // Scans up to the first job that is not due; returns its priority.
  std::optional<std::int64_t> scan_some(const kv::KeyRange& range, std::size_t limit, std::size_t window,
                                        DueScan& found);

  QueueCore& queue_;
  kv::Transaction& tx_;
  const JobKey prefix_;
  const std::int64_t due_until_;
  const std::size_t most_behind_;
  std::set<std::string, std::less<>> skipped_;
};

}  // namespace divan::jobs
