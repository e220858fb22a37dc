// Attempts at jobs of the server itself that write to databases: builds of indexes and replications.
#pragma once

#include "sim/observer.h"

namespace divan::sim {

/// The attempt that writes something, recorded by the transaction that writes it.
struct AttemptNote {
  std::string type;
  std::string job;  // its id
  std::string lock;
};
void note(kv::Transaction& tx, const AttemptNote& attempt, const std::string& token);

/// An attempt that writes has the job at that moment.
class AttemptInvariants final : public Invariant {
 public:
  explicit AttemptInvariants(World& world) : world_(world) {}
  void check(const Commit& commit, const Rows& rows) override;

 private:
  World& world_;
};

}  // namespace divan::sim
