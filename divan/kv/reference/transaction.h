// The reference engine's transaction.
#pragma once

#include <set>

#include "divan/kv/reference/state.h"
#include "divan/kv/retry.h"

namespace divan::kv::reference {

/// A write, with the arguments of its call.
struct Write {
  enum class Kind { set, clear_range, atomic, stamped_key, stamped_value };
  Kind kind;
  std::string key;    // or the range's beginning
  std::string value;  // or operand, or the range's end
  AtomicOp op = AtomicOp::add;
  std::uint32_t stamp_offset = 0;
};

/// Not thread-safe, like every kv::Transaction.
class ReferenceTransaction final : public Transaction {
 public:
  ReferenceTransaction(State& state, const Clock& clock, Rng& rng);
  ~ReferenceTransaction() override;

  std::optional<std::string> get(std::string_view key, Isolation isolation) override;
  std::vector<std::optional<std::string>> get_many(std::span<const std::string> keys,
                                                   Isolation isolation) override;
  bool scan(const KeyRange& range, const RangeOptions& options, const RowVisitor& visit) override;
  Version read_version() override { return read_version_; }

  void set(std::string_view key, std::string_view value) override;
  void clear(std::string_view key) override;
  using Transaction::clear_range;
  void clear_range(std::string_view begin, std::string_view end) override;
  void atomic(AtomicOp op, std::string_view key, std::string_view operand) override;
  void set_versionstamped_key(std::string_view key, std::string_view value) override;
  void set_versionstamped_value(std::string_view key, std::string_view value) override;
  std::shared_ptr<Watch> watch(std::string_view key) override;
  void add_read_conflict(const KeyRange& range) override;
  void add_write_conflict(const KeyRange& range) override;

  bool read_only() const override { return writes_.empty() && write_conflicts_.empty(); }
  std::size_t approximate_size() const override { return size_; }
  void on_error(const Error& error) override;

 protected:
  std::string do_commit() override;
  void do_reset() override;

 private:
  struct Row {
    std::string key;
    std::string value;
  };

  void check_open() const;
  void check_young() const;
  void check_key(std::string_view key) const;
  void check_range(std::string_view begin, std::string_view end) const;
  void add_write(Write write);
  void add_read(KeyRange range, Isolation isolation);
  void cancel_watches();
  // With the state's mutex held.
  std::string commit_writes();
  void check_conflicts() const;
  void apply(Version version);

  // The key's value for this transaction: the stored value with all writes to it.
  std::optional<std::string> value(std::string_view key) const;
  // Returns true if own writes determine the key's value, whatever is stored.
  bool is_decided(std::string_view key) const;
  // The first row in [begin, end), or the last. Throws accessed_unreadable if keys before it cannot be read.
  std::optional<Row> first_row(const std::string& begin, const std::string& end) const;
  std::optional<Row> last_row(const std::string& begin, const std::string& end) const;
  // Returns what scan() does. What is left between `begin` and `end` was not read.
  bool visit_rows(std::string& begin, std::string& end, const RangeOptions& options,
                  const RowVisitor& visit) const;
  void make_readable(const KeyRange& cleared);
  void check_way(const KeyRange& way) const;

  State& state_;
  const Clock& clock_;
  Rng& rng_;
  Retries retries_;

  Version read_version_ = 0;
  MonotonicTime started_;
  std::vector<Write> writes_;
  std::set<std::string, std::less<>> written_keys_;
  std::vector<KeyRange> unreadable_;
  std::vector<KeyRange> reads_;
  std::vector<KeyRange> write_conflicts_;
  std::vector<std::pair<Waiting, std::shared_ptr<Watch>>> watches_;
  std::size_t size_ = 0;
  bool ended_ = false;
};

}  // namespace divan::kv::reference
