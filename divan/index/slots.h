// The builds that run in a process, and which may begin.
//
// Builds are small or large. A small build is urgent (a query waits for it, or its index is not far behind),
// and takes about a second at most. The process has two threads more than large builds may occupy: one for
// small builds only, and one for small builds of queries only. Queries therefore wait neither for large
// builds, nor for small ones with slow functions. A build that turns out not to be small gets a slot of a
// large one, or is released until there is one; its job is remembered as slow for a while, and is then large
// from the beginning.
//
// Due jobs are accepted by urgency. Among equally urgent ones, the next job belongs to the database with the
// fewest builds in this process. One database never occupies all slots of large builds.
#pragma once

#include <map>
#include <optional>

#include "divan/base/mutex.h"
#include "divan/base/recent_keys.h"
#include "divan/jobs/attempts.h"

namespace divan::index {

/// A running build of this process.
struct RunningBuild {
  std::string type;
  std::string job;  // its id
  std::string database;
  std::string design_document;  // empty until known
  std::int64_t priority = 0;    // of its job
  bool small = false;
  std::int64_t started_at = 0;  // milliseconds since 1970
};

/// Assigns threads to builds. Thread-safe. The clock must outlive it.
class Slots {
 public:
  using Id = std::uint64_t;

  Slots(std::size_t large, const Clock& clock);

  /// Begins a build; returns nullopt if it may not begin now.
  std::optional<Id> begin(RunningBuild build);
  void end(Id id);
  void set_design_document(Id id, std::string_view design_document);

  /// Makes a small build large. Returns false if there is no slot: the build must then be released.
  bool enlarge(Id id);
  bool is_small(Id id) const;

  /// Sorts due jobs in the order in which they must be accepted, and removes those that may not begin now.
  void order(std::vector<jobs::DueJob>& due);
  /// Returns true if a build must yield to one of these jobs. `free_thread`: there is a thread without a
  /// build.
  bool yields_to(Id id, const std::vector<jobs::DueJob>& due, bool free_thread, bool slice_is_over);

  std::vector<RunningBuild> running() const;
  /// Returns true if order() skipped jobs since the last call: the queue must then be polled when a build
  /// ends.
  bool reset_skipped();

  /// Maximum number of large builds.
  std::size_t large() const { return large_; }
  /// Maximum number of builds.
  std::size_t threads() const { return large_ + 2; }

 private:
  bool is_large(const jobs::DueJob& job, MonotonicTime now) const;
  int urgency(const jobs::DueJob& job, MonotonicTime now) const;
  bool may_begin(std::string_view database, bool large, std::int64_t priority,
                 std::optional<Id> without) const;
  bool order_without(std::vector<jobs::DueJob>& due, std::optional<Id> without) const;

  const std::size_t large_;
  const Clock& clock_;
  mutable Mutex mutex_{MutexRank::build_slots, "Slots::mutex_"};  // protects the members below
  std::map<Id, RunningBuild> running_;
  Id next_id_ = 0;
  RecentKeys slow_;  // ids of jobs that are large
  bool skipped_ = false;
};

}  // namespace divan::index
