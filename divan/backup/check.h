// Checks the rows of unfinished restores, for `divan verify`.
#pragma once

#include "divan/docs/check.h"

namespace divan::backup {

/// Passes the databases that are being restored to the check of the databases. Not thread-safe.
class Check final : public kv::RowCheck {
 public:
  /// Both must outlive the check.
  Check(docs::Check& databases, kv::Findings& findings) : databases_(databases), findings_(findings) {}

  bool row(std::string_view key, std::string_view value) override;
  void finish(kv::RowSource&) override {}

  /// The number of databases of unfinished restores, which a server clears.
  std::int64_t unfinished() const { return unfinished_; }

 private:
  docs::Check& databases_;
  kv::Findings& findings_;
  std::int64_t unfinished_ = 0;
};

}  // namespace divan::backup
