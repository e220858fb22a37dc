// Invariants of indexes.
#pragma once

#include "sim/database_invariants.h"
#include "sim/mapper.h"

namespace divan::sim {

/// Only the attempt that has an index's job writes to the index. The index has the rows that a build from
/// nothing would have, of each document whose last change is not after the index's sequence: when it has
/// reached the end of the changes, of all documents.
class IndexInvariants final : public Invariant {
 public:
  IndexInvariants(Engine& engine, DatabaseInvariants& databases)
      : engine_(engine), world_(engine.world), databases_(databases) {}

  void check(const Commit& commit, const Rows& rows) override;

  /// Returns an index that a design document defines and that has not reached the end of the changes.
  std::optional<std::string> behind() const;

 private:
  using Name = std::pair<std::int64_t, int>;  // database and function

  void trace_build(const Change& change);
  void check_rows(const Name& name, const kv::Versionstamp& reached, kv::Transaction& tx);

  Engine& engine_;
  World& world_;
  DatabaseInvariants& databases_;
  std::map<Name, kv::Versionstamp> reached_;
};

}  // namespace divan::sim
