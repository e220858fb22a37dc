// Checks the rows that belong to no module, for `divan verify`.
#pragma once

#include "divan/kv/check.h"

namespace divan::app {

/// Checks the server's identity, and the marks of commits (kv/settle.h) that a store keeps among its rows.
/// Not thread-safe.
class ServerCheck final : public kv::RowCheck {
 public:
  /// The findings must outlive the check.
  explicit ServerCheck(kv::Findings& findings) : findings_(findings) {}

  bool row(std::string_view key, std::string_view value) override;
  void finish(kv::RowSource&) override {}

 private:
  kv::Findings& findings_;
};

}  // namespace divan::app
