// A store that reports its operations to a test, which may count them, let them fail or end the process.
#pragma once

#include <functional>

#include "divan/kv/forwarding.h"

namespace divan::updates::testing {

enum class Operation { begin, read, watch, write, commit };

/// Called before and after each operation, which throws what this throws. Must be thread-safe if the store is
/// used by several threads.
using Observer = std::function<void(Operation operation, bool done)>;

/// Not thread-safe, like every transaction.
class ObservedTransaction final : public kv::ForwardingTransaction {
 public:
  ObservedTransaction(const Observer& observer, std::unique_ptr<kv::Transaction> inner)
      : ForwardingTransaction(std::move(inner)), observer_(observer) {}

  std::optional<std::string> get(std::string_view key, kv::Isolation isolation) override {
    return observed(Operation::read, [&] { return ForwardingTransaction::get(key, isolation); });
  }
  std::vector<std::optional<std::string>> get_many(std::span<const std::string> keys,
                                                   kv::Isolation isolation) override {
    return observed(Operation::read, [&] { return ForwardingTransaction::get_many(keys, isolation); });
  }
  bool scan(const kv::KeyRange& range, const kv::RangeOptions& options,
            const kv::RowVisitor& visit) override {
    return observed(Operation::read, [&] { return ForwardingTransaction::scan(range, options, visit); });
  }
  std::shared_ptr<kv::Watch> watch(std::string_view key) override {
    return observed(Operation::watch, [&] { return ForwardingTransaction::watch(key); });
  }
  void set(std::string_view key, std::string_view value) override {
    observed(Operation::write, [&] { ForwardingTransaction::set(key, value); });
  }
  void clear(std::string_view key) override {
    observed(Operation::write, [&] { ForwardingTransaction::clear(key); });
  }
  using Transaction::clear_range;
  void clear_range(std::string_view begin, std::string_view end) override {
    observed(Operation::write, [&] { ForwardingTransaction::clear_range(begin, end); });
  }
  void atomic(kv::AtomicOp op, std::string_view key, std::string_view operand) override {
    observed(Operation::write, [&] { ForwardingTransaction::atomic(op, key, operand); });
  }
  void set_versionstamped_key(std::string_view key, std::string_view value) override {
    observed(Operation::write, [&] { ForwardingTransaction::set_versionstamped_key(key, value); });
  }
  void set_versionstamped_value(std::string_view key, std::string_view value) override {
    observed(Operation::write, [&] { ForwardingTransaction::set_versionstamped_value(key, value); });
  }

 protected:
  std::string do_commit() override {
    return observed(Operation::commit, [&] { return ForwardingTransaction::do_commit(); });
  }

 private:
  template <class Fn>
  std::invoke_result_t<Fn&> observed(Operation operation, Fn&& fn) {
    observer_(operation, false);
    if constexpr (std::is_void_v<std::invoke_result_t<Fn&>>) {
      fn();
      observer_(operation, true);
    } else {
      auto result = fn();
      observer_(operation, true);
      return result;
    }
  }

  const Observer& observer_;
};

/// Thread-safe if the observer is.
class ObservedStore final : public kv::ForwardingDatabase {
 public:
  ObservedStore(kv::Database& inner, Observer observer)
      : ForwardingDatabase(inner), observer_(std::move(observer)) {}

  std::unique_ptr<kv::Transaction> begin() override {
    observer_(Operation::begin, false);
    return std::make_unique<ObservedTransaction>(observer_, inner().begin());
  }

 private:
  const Observer observer_;
};

}  // namespace divan::updates::testing
