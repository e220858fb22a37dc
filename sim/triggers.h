// Triggers of the design documents of nodes, and their invariants. The server's code runs them; their jobs
// have templates, since the processes that run JavaScript cannot be stepped.
#pragma once

#include "sim/database_invariants.h"
#include "sim/mapper.h"

namespace divan::sim {

/// Each change of a document leads to at most one job of a trigger, and a job is of the definition that the
/// design document has when it is added. When a trigger has reached the end of the changes, each document
/// whose last change came after the trigger has the job of that change.
class TriggerInvariants final : public Invariant {
 public:
  TriggerInvariants(World& world, DatabaseInvariants& databases) : world_(world), databases_(databases) {}

  void check(const Commit& commit, const Rows& rows) override;

  /// Returns a change that has led to no job.
  std::optional<std::string> missing() const;

 private:
  // Database, and the id of the design document.
  using Name = std::pair<std::int64_t, std::string>;
  // Design document, document, and the sequence of its change.
  using Cause = std::tuple<std::string, std::string, std::string>;

  void record_triggers(std::int64_t number, const DatabaseModel& model);
  void check_job(std::string_view data);

  World& world_;
  DatabaseInvariants& databases_;
  std::map<Name, kv::Versionstamp> started_;
  std::set<Cause> seen_;
};

}  // namespace divan::sim
