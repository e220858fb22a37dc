// Rows of arbitrary bytes in a store, for the targets that read them.
#pragma once

#include <map>

#include "divan/docs/catalog.h"
#include "divan/kv/store.h"
#include "fuzz/check.h"

namespace divan::fuzz {

/// A transaction on rows in memory: nothing conflicts and nothing is committed, so that one input costs
/// microseconds instead of a store on disk. Not thread-safe.
class Rows final : public kv::Transaction {
 public:
  std::map<std::string, std::string, std::less<>> rows;

  std::optional<std::string> get(std::string_view key, kv::Isolation) override {
    const auto found = rows.find(key);
    return found == rows.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<std::optional<std::string>> get_many(std::span<const std::string> keys,
                                                   kv::Isolation) override {
    std::vector<std::optional<std::string>> values;
    for (const auto& key : keys) values.push_back(get(key, kv::Isolation::snapshot));
    return values;
  }
  bool scan(const kv::KeyRange& range, const kv::RangeOptions& options,
            const kv::RowVisitor& visit) override {
    check(range.begin <= range.end);
    std::vector<std::pair<std::string, std::string>> found(rows.lower_bound(range.begin),
                                                           rows.lower_bound(range.end));
    if (options.reverse) std::reverse(found.begin(), found.end());
    std::size_t count = 0;
    for (const auto& [key, value] : found) {
      if (!visit(key, value)) return false;
      if (++count == options.limit) return true;
    }
    return false;
  }
  void set(std::string_view key, std::string_view value) override {
    check(key.size() <= kv::kMaxKeyBytes && value.size() <= kv::kMaxValueBytes);
    rows.insert_or_assign(std::string(key), std::string(value));
  }
  void clear(std::string_view key) override {
    if (const auto found = rows.find(key); found != rows.end()) rows.erase(found);
  }
  void clear_range(std::string_view begin, std::string_view end) override {
    if (begin < end) rows.erase(rows.lower_bound(begin), rows.lower_bound(end));
  }
  void atomic(kv::AtomicOp op, std::string_view key, std::string_view operand) override {
    if (auto value = kv::apply_atomic(op, get(key, kv::Isolation::snapshot), operand)) {
      set(key, *value);
    } else {
      clear(key);
    }
  }
  // As a commit would complete them, with a version of all ones.
  void set_versionstamped_key(std::string_view key, std::string_view value) override {
    set(completed(key), value);
  }
  void set_versionstamped_value(std::string_view key, std::string_view value) override {
    set(key, completed(value));
  }

  kv::Version read_version() override { return 1; }
  std::shared_ptr<kv::Watch> watch(std::string_view) override { return std::make_shared<kv::Watch>(); }
  void add_read_conflict(const kv::KeyRange&) override {}
  void add_write_conflict(const kv::KeyRange&) override {}
  bool read_only() const override { return false; }
  std::size_t approximate_size() const override { return 0; }
  void on_error(const kv::Error& error) override { throw error; }

 protected:
  std::string do_commit() override { std::abort(); }
  void do_reset() override { std::abort(); }

 private:
  std::string completed(std::string_view text) const {
    std::uint32_t offset = 0;
    check(text.size() >= 4);
    std::memcpy(&offset, text.data() + text.size() - 4, 4);
    std::string out(text.substr(0, text.size() - 4));
    return out.replace(offset, 10, std::string(10, '\x01'));
  }
};

/// A store on such rows: its transactions begin with what there is and are never committed. Not thread-safe.
class RowsStore final : public kv::Database {
 public:
  explicit RowsStore(const Rows& rows) : rows_(rows) {}
  std::unique_ptr<kv::Transaction> begin() override {
    auto copy = std::make_unique<Rows>();
    copy->rows = rows_.rows;
    return copy;
  }
  kv::Version dump(const kv::RowVisitor&) override { std::abort(); }
  std::int64_t estimate_bytes(const kv::KeyRange&) override { std::abort(); }
  void advance_version(kv::Version) override { std::abort(); }

 private:
  const Rows& rows_;
};

/// Splits the input into pieces, each preceded by a byte with its length (the last may be truncated).
class Pieces {
 public:
  explicit Pieces(std::string_view input) : rest_(input) {}

  bool at_end() const { return rest_.empty(); }
  std::string_view take() {
    if (rest_.empty()) return {};
    const auto size = std::min<std::size_t>(static_cast<unsigned char>(rest_[0]), rest_.size() - 1);
    const auto piece = rest_.substr(1, size);
    rest_.remove_prefix(1 + size);
    return piece;
  }
  /// All that is left.
  std::string_view rest() { return std::exchange(rest_, {}); }

 private:
  std::string_view rest_;
};

/// Reads damaged rows: a result, or the error that reports the damage.
inline bool reads(const std::function<void()>& call) { return answers(500, call); }

}  // namespace divan::fuzz
