// A store that stops writing, for tests of what is left when a process ends in the middle of its work.
#pragma once

#include <atomic>
#include <climits>

#include "divan/kv/forwarding.h"

namespace divan::kv::testing {

/// Fails the commits of writes when `commits_left` have been made, the next `failures_left` ones:
/// transaction_timed_out. Thread-safe.
class TiringStore final : public ForwardingDatabase {
 public:
  using ForwardingDatabase::ForwardingDatabase;
  std::unique_ptr<Transaction> begin() override { return std::make_unique<Tiring>(*this, inner().begin()); }

  std::atomic<int> commits_left = INT_MAX;
  std::atomic<int> failures_left = INT_MAX;

 private:
  class Tiring final : public ForwardingTransaction {
   public:
    Tiring(TiringStore& store, std::unique_ptr<Transaction> inner)
        : ForwardingTransaction(std::move(inner)), store_(store) {}

   protected:
    std::string do_commit() override {
      if (!read_only() && --store_.commits_left < 0 && --store_.failures_left >= 0)
        throw Error(ErrorCode::transaction_timed_out);
      return ForwardingTransaction::do_commit();
    }

   private:
    TiringStore& store_;
  };
};

}  // namespace divan::kv::testing
