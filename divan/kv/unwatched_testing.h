// For tests of code that polls where it cannot watch.
#pragma once

#include <memory>

#include "divan/kv/forwarding.h"

namespace divan::kv::testing {

/// A store that has no watches left: watch() throws too_many_watches.
class UnwatchedStore final : public ForwardingDatabase {
 public:
  using ForwardingDatabase::ForwardingDatabase;
  std::unique_ptr<Transaction> begin() override {
    class Unwatched final : public ForwardingTransaction {
     public:
      using ForwardingTransaction::ForwardingTransaction;
      std::shared_ptr<Watch> watch(std::string_view) override { throw Error(ErrorCode::too_many_watches); }
    };
    return std::make_unique<Unwatched>(inner().begin());
  }
};

}  // namespace divan::kv::testing
