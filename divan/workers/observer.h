// Finds out whose heartbeats stand still, and evicts them.
//
// The observer does not know when a counter moved, only that it did between two looks: it looks so often that
// this makes no difference to anybody, and is there at the moment at which somebody would have been silent
// for its timeout. While there is nobody to look at, it does not look.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>

#include "divan/workers/registry.h"

namespace divan::workers {

/// How long at most a heartbeat is not noticed: so much later than its timeout a silent worker is evicted.
inline constexpr Duration kMaxLookInterval = std::chrono::milliseconds(500);

/// Not thread-safe. The store, registry and clock must outlive it.
class Observer {
 public:
  Observer(kv::Database& store, Registry& registry, const Clock& clock)
      : store_(store), registry_(registry), clock_(clock) {}

  /// When to look again, unless somebody comes or goes before.
  MonotonicTime next() const { return next_; }
  /// Whether it is time to look.
  bool due() const;

  /// Looks at everybody but `own`, who are this process's and not to be evicted by it: it is frozen when they
  /// are. Evicts the silent. `on_change` is called, on any thread, when it is time to look before next().
  /// Throws errors of the store.
  void look(const std::set<WorkerRef>& own, const std::function<void()>& on_change);

 private:
  struct Observation {
    std::int64_t counter;
    MonotonicTime since;
  };

  std::vector<Registry::Heartbeat> read(const std::function<void()>& on_change);
  // False if that failed.
  bool evict(const Registry::Heartbeat& heartbeat);

  kv::Database& store_;
  Registry& registry_;
  const Clock& clock_;

  Registry::Timeouts timeouts_;
  std::map<WorkerRef, Observation> observed_;
  std::shared_ptr<kv::Watch> watch_;  // on the membership
  MonotonicTime next_{};
};

}  // namespace divan::workers
