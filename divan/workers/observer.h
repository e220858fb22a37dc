// Detects workers whose heartbeat counter does not advance, and evicts them.
//
// An observer does not know when a counter advanced, only that it did between two reads. It reads the
// heartbeats of its share of the workers (ring.h) so often that the difference does not matter, and those of
// all others at longer intervals: even if all of its closest observers stopped together with the worker, any
// other live node evicts it after at most one and a half timeouts, apart from the time that does not count
// as silence.
//
// Silence is the time for which an observer waited on purpose between two reads of the same counter value.
// Time in which the process was paused or waited for the store does not count: the worker may have been
// paused too, or have been unable to reach the store, and gets the rest of its timeout.
//
// If all workers are inside this process, nothing is read until the membership changes.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "divan/workers/registry.h"
#include "divan/workers/ring.h"

namespace divan::workers {

/// The longest interval at which the closest observers read a heartbeat. They evict a silent worker so much
/// later than its timeout at most, apart from time that does not count as silence.
inline constexpr Duration kMaxPollInterval = std::chrono::milliseconds(500);

/// Not thread-safe. The store, registry and clock must outlive it.
class Observer {
 public:
  Observer(kv::Database& store, Registry& registry, const Clock& clock)
      : store_(store), registry_(registry), clock_(clock) {}

  /// When the next poll is due, unless the membership changes before.
  MonotonicTime next() const { return next_; }
  /// Returns true if a poll is due.
  bool due() const;

  /// Reads the heartbeats that are due, except those of `own`, the workers of this process, and evicts the
  /// workers that are silent. `on_change` is called, on any thread, when the membership has changed. Throws
  /// errors of the store.
  ///
  /// A process that has a member of kNodeRole among its own observes its share closely, any other process all
  /// workers.
  void poll(const std::set<WorkerRef>& own, const std::function<void()>& on_change);

  /// The silence so far of the workers of a role that this observer watches, by registration; 0 for those
  /// that were not read yet.
  std::map<WorkerRef, Duration> silences(std::string_view role) const;

 private:
  struct Observation {
    std::int64_t counter = -1;  // -1: not known
    Duration silence{};
    MonotonicTime read_at = MonotonicTime::min();
    MonotonicTime next{};  // when to read it again
    Duration timeout{};
    bool closely = false;

    // For how long the observer has waited on purpose since it read the counter.
    Duration waited(MonotonicTime now) const { return std::min(now, next) - read_at; }
  };
  using Observations = std::map<WorkerRef, Observation>;

  // Returns the counters of the workers that are due.
  std::map<WorkerRef, std::int64_t> read(const std::set<WorkerRef>& own, MonotonicTime now,
                                         const std::function<void()>& on_change);
  void follow_roster(const std::set<WorkerRef>& own);
  void remove_empty_roles();
  bool is_due(const Observation& observation, MonotonicTime now) const;
  std::vector<Registry::Name> due_names(MonotonicTime now) const;
  void schedule(Observation& observation) const;
  void evict(const WorkerRef& ref, Observation& observation);

  kv::Database& store_;
  Registry& registry_;
  const Clock& clock_;

  Registry::Roster roster_;
  std::set<WorkerRef> own_;           // at the last follow_roster()
  kv::Versionstamp followed_;         // the version of the roster at that time
  Observations observations_;         // of the other workers in the roster
  std::shared_ptr<kv::Watch> watch_;  // on the membership
  MonotonicTime next_{};
};

}  // namespace divan::workers
