// Finds out whose heartbeats stand still, and evicts them.
//
// An observer does not know when a counter moved, only that it did between two readings. It reads the
// heartbeats of its share of the workers (ring.h) so often that this makes no difference, and those of all
// others now and then: any node that lives evicts a worker within one and a half timeouts, even if all
// closest observers stopped with the worker.
//
// Silence is the time for which an observer waited on purpose between two readings that show the same
// counter. Time in which the process was paused, or waited for the store, does not count: the worker may have
// been paused too, or kept from the store, and gets its chance first.
//
// Without workers of other processes nothing is read.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>

#include "divan/workers/registry.h"
#include "divan/workers/ring.h"

namespace divan::workers {

/// How often the closest observers read a heartbeat at the least: so much later than its timeout a silent
/// worker is evicted.
inline constexpr Duration kMaxLookInterval = std::chrono::milliseconds(500);

/// Not thread-safe. The store, registry and clock must outlive it.
class Observer {
 public:
  Observer(kv::Database& store, Registry& registry, const Clock& clock)
      : store_(store), registry_(registry), clock_(clock) {}

  /// When to look again, unless the membership changes before.
  MonotonicTime next() const { return next_; }
  /// Whether it is time to look.
  bool due() const;

  /// Reads the heartbeats that are due, except those of `own`, the workers of this process: when they are
  /// silent, so is the process. Evicts the silent. `on_change` is called, on any thread, when the membership
  /// has changed. Throws errors of the store.
  ///
  /// A process that has a member of kNodeRole among its own observes its share closely, any other process all
  /// workers.
  void look(const std::set<WorkerRef>& own, const std::function<void()>& on_change);

 private:
  struct Observation {
    std::int64_t counter = -1;  // -1: not known
    Duration silence{};
    MonotonicTime read_at = MonotonicTime::min();
    MonotonicTime next{};  // when to read it again
    Duration timeout{};
    bool closely = false;
  };
  using Observations = std::map<WorkerRef, Observation>;

  // The counters of those that are due.
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
  std::set<WorkerRef> own_;           // as of the last follow_roster()
  kv::Versionstamp followed_;         // the version of the roster then
  Observations observations_;         // of the others in the roster
  std::shared_ptr<kv::Watch> watch_;  // on the membership
  MonotonicTime next_{};
};

}  // namespace divan::workers
