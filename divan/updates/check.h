// Checks the rows of the updates feed: for `divan verify`.
#pragma once

#include "divan/kv/check.h"

namespace divan::updates {

/// Checks that every row of the feed and of the log of events has its index entry, and every entry its row.
/// Not thread-safe.
class Check final : public kv::RowCheck {
 public:
  /// `version` is the store's. The findings must outlive the check.
  Check(kv::Version version, kv::Findings& findings) : version_(version), findings_(findings) {}

  bool row(std::string_view key, std::string_view value) override;
  void finish(kv::RowSource& rows) override;

 private:
  const kv::Version version_;
  kv::Findings& findings_;
  kv::RowSum rows_, positions_;  // of the feed, and of the log of events
};

}  // namespace divan::updates
