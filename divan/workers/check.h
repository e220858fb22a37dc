// Checks the rows of the workers: for `divan verify`.
#pragma once

#include "divan/kv/check.h"

namespace divan::workers {

/// Checks that every worker has a heartbeat, and every heartbeat a worker. Not thread-safe.
class Check final : public kv::RowCheck {
 public:
  /// `version` is the store's. The findings must outlive the check.
  Check(kv::Version version, kv::Findings& findings) : version_(version), findings_(findings) {}

  bool row(std::string_view key, std::string_view value) override;
  void finish(kv::RowSource& rows) override;

 private:
  const kv::Version version_;
  kv::Findings& findings_;
  kv::RowSum workers_, heartbeats_;  // role, id, incarnation
};

}  // namespace divan::workers
