// The embedded engine's transaction: a snapshot to read, a map of writes, and the conflict ranges of its
// reads.
#pragma once

#include "divan/base/rng.h"
#include "divan/kv/embedded/committer.h"
#include "divan/kv/embedded/cursor.h"
#include "divan/kv/retry.h"

namespace divan::kv::embedded {

/// Not thread-safe, like every kv::Transaction. The committer, clock and rng must outlive it.
class EmbeddedTransaction final : public Transaction {
 public:
  /// What a transaction that must not block may read.
  static constexpr std::size_t kMaxQuickBytes = 256 << 10;

  EmbeddedTransaction(Committer& committer, const Clock& clock, Rng& rng);
  ~EmbeddedTransaction() override;

  void forbid_blocking() override {
    prefixes_.reset();
    quick_bytes_ = kMaxQuickBytes;
  }
  void read_once() override {
    prefixes_.reset();
    reads_once_ = true;
  }
  std::optional<std::string> get(std::string_view key, Isolation isolation) override;
  std::vector<std::optional<std::string>> get_many(std::span<const std::string> keys,
                                                   Isolation isolation) override;
  bool scan(const KeyRange& range, const RangeOptions& options, const RowVisitor& visit) override;
  Version read_version() override { return request_->read_version; }

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

  bool read_only() const override;
  std::size_t approximate_size() const override;
  bool start_commit(std::function<void()> done) override;
  bool commits_quickly() const override { return committer_.commits_quickly(); }
  void on_error(const Error& error) override;
  Duration start_retry(const Error& error) override;
  void restart() override;

 protected:
  std::string do_commit() override;
  void do_reset() override;

 private:
  void check_young() const;
  void check_readable() const;
  void check_readable(std::string_view key) const;
  void check_range(std::string_view begin, std::string_view end) const;
  Reads reads() const {
    if (quick_bytes_) return Reads::from_memory;
    return reads_once_ ? Reads::once : Reads::may_block;
  }
  void count_read(std::size_t bytes);
  std::optional<std::string> stored(std::string_view key);
  void check_commit() const;
  std::string commit_writes();
  void cancel_watches();
  void check_writable() const;
  void check_key(std::string_view key) const;
  void check_value(std::string_view value) const;
  // Returns what scan() does. `reached` becomes the end of what was read, unless all of it was.
  bool visit_rows(const KeyRange& range, const RangeOptions& options, const RowVisitor& visit,
                  std::string& reached);
  void add_read_key(std::string_view key, Isolation isolation);
  void add_read(std::string begin, std::string end, Isolation isolation);

  Committer& committer_;
  const Clock& clock_;
  Rng& rng_;

  std::shared_ptr<const Snapshot> snapshot_;
  PrefixIterator prefixes_;  // of snapshot_, for reads()
  MonotonicTime started_;
  std::shared_ptr<CommitRequest> request_;
  std::size_t conflict_bytes_ = 0;
  bool reads_once_ = false;
  // What may still be read without blocking, if that is forbidden. Only snapshot_ is read accordingly.
  std::optional<std::size_t> quick_bytes_;
  bool ended_ = false;       // only a reset is left
  bool committing_ = false;  // start_commit() was called, and commit() was not
  Retries retries_;
};

}  // namespace divan::kv::embedded
