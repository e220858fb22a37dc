// Checks the rows of triggers, for `divan verify`.
#pragma once

#include "divan/kv/check.h"

namespace divan::index::triggers {

/// Verifies that the rows of the parts that only triggers have can be read. Not thread-safe.
class Check final : public kv::RowCheck {
 public:
  /// The findings must outlive the check.
  explicit Check(kv::Findings& findings) : findings_(findings) {}

  bool row(std::string_view key, std::string_view value) override;
  void finish(kv::RowSource&) override {}

 private:
  kv::Findings& findings_;
};

}  // namespace divan::index::triggers
