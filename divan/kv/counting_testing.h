// What work on a store costs, for the tests of every module.
#pragma once

#include <atomic>

#include "divan/kv/forwarding.h"

namespace divan::kv::testing {

/// Counts the transactions that are begun, and what they read. Thread-safe.
class CountingStore final : public ForwardingDatabase {
 public:
  using ForwardingDatabase::ForwardingDatabase;
  std::unique_ptr<Transaction> begin() override {
    ++begun;
    return std::make_unique<CountingTransaction>(inner().begin(), *this);
  }
  std::atomic<int> begun = 0;
  std::atomic<int> rows_read = 0;  // keys that were looked for, and rows that were shown to a visitor
  std::atomic<int> scans = 0;

 private:
  class CountingTransaction final : public ForwardingTransaction {
   public:
    CountingTransaction(std::unique_ptr<Transaction> transaction, CountingStore& store)
        : ForwardingTransaction(std::move(transaction)), store_(store) {}

    std::optional<std::string> get(std::string_view key, Isolation isolation) override {
      ++store_.rows_read;
      return inner().get(key, isolation);
    }
    std::vector<std::optional<std::string>> get_many(std::span<const std::string> keys,
                                                     Isolation isolation) override {
      store_.rows_read += static_cast<int>(keys.size());
      return inner().get_many(keys, isolation);
    }
    bool scan(const KeyRange& range, const RangeOptions& options, const RowVisitor& visit) override {
      ++store_.scans;
      return inner().scan(range, options, [&](std::string_view key, std::string_view value) {
        ++store_.rows_read;
        return visit(key, value);
      });
    }

   private:
    CountingStore& store_;
  };
};

}  // namespace divan::kv::testing
