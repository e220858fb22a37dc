// Stores and transactions that forward all calls to others: base classes for those that change some of them,
// such as stores of tests that inject faults.
#pragma once

#include <memory>

#include "divan/kv/store.h"

namespace divan::kv {

/// Not thread-safe, like every Transaction. Can only block in commit() and on_error(): what overrides
/// do_commit() would not see a commit that the inner transaction has started.
class ForwardingTransaction : public Transaction {
 public:
  explicit ForwardingTransaction(std::unique_ptr<Transaction> inner) : inner_(std::move(inner)) {}

  bool is_remote() const override { return inner_->is_remote(); }
  void prefetch(const Prefetch& reads) override { inner_->prefetch(reads); }
  void forbid_blocking() override { inner_->forbid_blocking(); }
  void read_once() override { inner_->read_once(); }
  std::optional<std::string> get(std::string_view key, Isolation isolation) override {
    return inner_->get(key, isolation);
  }
  std::vector<std::optional<std::string>> get_many(std::span<const std::string> keys,
                                                   Isolation isolation) override {
    return inner_->get_many(keys, isolation);
  }
  bool scan(const KeyRange& range, const RangeOptions& options, const RowVisitor& visit) override {
    return inner_->scan(range, options, visit);
  }
  Version read_version() override { return inner_->read_version(); }
  void set(std::string_view key, std::string_view value) override { inner_->set(key, value); }
  void clear(std::string_view key) override { inner_->clear(key); }
  using Transaction::clear_range;
  void clear_range(std::string_view begin, std::string_view end) override { inner_->clear_range(begin, end); }
  void atomic(AtomicOp op, std::string_view key, std::string_view operand) override {
    inner_->atomic(op, key, operand);
  }
  void set_versionstamped_key(std::string_view key, std::string_view value) override {
    inner_->set_versionstamped_key(key, value);
  }
  void set_versionstamped_value(std::string_view key, std::string_view value) override {
    inner_->set_versionstamped_value(key, value);
  }
  std::shared_ptr<Watch> watch(std::string_view key) override { return inner_->watch(key); }
  void add_read_conflict(const KeyRange& range) override { inner_->add_read_conflict(range); }
  void add_write_conflict(const KeyRange& range) override { inner_->add_write_conflict(range); }
  bool read_only() const override { return inner_->read_only(); }
  std::size_t approximate_size() const override { return inner_->approximate_size(); }
  void on_error(const Error& error) override {
    inner_->on_error(error);
    inner_is_reset_ = true;  // it keeps its count of tries
    reset();
  }

 protected:
  std::string do_commit() override {
    inner_->commit();
    return inner_->committed_version() < 0 ? std::string() : inner_->versionstamp();
  }
  void do_reset() override {
    if (!std::exchange(inner_is_reset_, false)) inner_->reset();
  }
  Transaction& inner() { return *inner_; }
  /// Returns the inner transaction and replaces it. Without a new one, this transaction must not be used.
  std::unique_ptr<Transaction> take_inner(std::unique_ptr<Transaction> next = nullptr) {
    return std::exchange(inner_, std::move(next));
  }

 private:
  std::unique_ptr<Transaction> inner_;
  bool inner_is_reset_ = false;
};

/// Thread-safe if the other one is, which must outlive it.
class ForwardingDatabase : public Database {
 public:
  explicit ForwardingDatabase(Database& inner) : inner_(inner) {}

  std::unique_ptr<Transaction> begin() override { return inner_.begin(); }
  Version dump(const RowVisitor& visit) override { return inner_.dump(visit); }
  std::int64_t estimate_bytes(const KeyRange& range) override { return inner_.estimate_bytes(range); }
  void advance_version(Version at_least) override { inner_.advance_version(at_least); }

 protected:
  Database& inner() { return inner_; }

 private:
  Database& inner_;
};

}  // namespace divan::kv
