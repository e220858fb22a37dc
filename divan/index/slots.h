// What builds of a process run, and which may begin.
//
// Builds are small or large. A small one is urgent (a query waits for it, or its index is not far behind),
// and takes a moment. The process has two threads more than large builds may occupy: one that only small
// builds use, and one that only small builds for queries use. So a query waits neither for large builds, nor
// for small ones whose functions turn out to be slow. A build that turns out not to be small gets the slot of
// a large one, or is given back until there is one; its job is remembered as slow for a while, and counts as
// large from the beginning.
//
// Due jobs are taken by urgency; among the same, that of the database with the fewest builds here is next.
// One database never has the slots of all large builds.
#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "divan/base/recent_keys.h"
#include "divan/jobs/attempts.h"

namespace divan::index {

/// A build that runs in this process.
struct RunningBuild {
  std::string type;
  std::string job;  // its id
  std::string database;
  std::string design_document;  // empty until it is known
  std::int64_t priority = 0;    // of its job
  bool small = false;
  std::int64_t started_at = 0;  // milliseconds since 1970
};

/// Thread-safe. The clock must outlive it.
class Slots {
 public:
  using Id = std::uint64_t;

  Slots(std::size_t large, const Clock& clock);

  /// The build begins; nullopt if it may not now.
  std::optional<Id> begin(RunningBuild build);
  void end(Id id);
  void set_design_document(Id id, std::string_view design_document);

  /// The build is not small. False if there is no slot: it is to be given back.
  bool enlarge(Id id);
  bool is_small(Id id) const;

  /// Puts due jobs into the order in which they are to be taken, without those that may not begin now.
  void order(std::vector<jobs::DueJob>& due);
  /// Whether a build is to make way for one of these jobs. `free_thread`: there is a thread without a build.
  bool gives_way(Id id, const std::vector<jobs::DueJob>& due, bool free_thread, bool turn_is_over);

  std::vector<RunningBuild> running() const;
  /// Whether order() skipped jobs since the last call: somebody is to look for jobs when a build ends.
  bool take_skipped();

  /// Builds that are no small ones, at most.
  std::size_t large() const { return large_; }
  /// All builds, at most.
  std::size_t threads() const { return large_ + 2; }

 private:
  bool is_large(const jobs::DueJob& job, MonotonicTime now) const;
  int urgency(const jobs::DueJob& job, MonotonicTime now) const;
  bool may_begin(std::string_view database, bool large, std::int64_t priority,
                 std::optional<Id> without) const;
  bool order_without(std::vector<jobs::DueJob>& due, std::optional<Id> without) const;

  const std::size_t large_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::map<Id, RunningBuild> running_;
  Id next_id_ = 0;
  RecentKeys slow_;  // ids of jobs that count as large
  bool skipped_ = false;
};

}  // namespace divan::index
