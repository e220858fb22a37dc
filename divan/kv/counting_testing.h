// What work on a store costs, for the tests of every room.
#pragma once

#include <atomic>

#include "divan/kv/forwarding.h"

namespace divan::kv::testing {

/// Counts the transactions that are begun. Thread-safe.
class CountingStore final : public ForwardingDatabase {
 public:
  using ForwardingDatabase::ForwardingDatabase;
  std::unique_ptr<Transaction> begin() override {
    ++begun;
    return inner().begin();
  }
  std::atomic<int> begun = 0;
};

}  // namespace divan::kv::testing
