// Invariants of workers.
#pragma once

#include <set>

#include "sim/observer.h"

namespace divan::sim {

/// Each worker has both a row and a heartbeat. A role's version changes if and only if its members do. No
/// worker is evicted before its timeout has passed without a heartbeat, and no evicted incarnation is
/// registered again.
class WorkerInvariants final : public Invariant {
 public:
  using Name = std::pair<std::string, std::string>;  // role and id

  explicit WorkerInvariants(World& world) : world_(world) {}

  void check(const Commit& commit, const Rows& rows) override;

  /// The worker is about to be unregistered, before its timeout has passed.
  void expect_removal(const std::string& incarnation) { leaving_.insert(incarnation); }

  std::map<Name, std::string> incarnations() const;
  bool has_workers(std::string_view role) const;
  /// The version of the last change of a role's membership; 0 if it never changed.
  kv::Version last_change(const std::string& role) const {
    const auto changed = changed_.find(role);
    return changed == changed_.end() ? 0 : changed->second;
  }

 private:
  struct Worker {
    std::string incarnation;  // empty: not registered
    Duration timeout{};
    std::int64_t beats = 0;
    MonotonicTime beat_at{};  // in true time
  };

  void check_worker(const Name& name, const Rows& rows);
  void ended(const Name& name, const Worker& worker, bool replaced);

  World& world_;
  std::map<Name, Worker> workers_;
  std::set<std::string> gone_;
  std::set<std::string> leaving_;
  std::map<std::string, kv::Version> changed_;  // by role
};

}  // namespace divan::sim
