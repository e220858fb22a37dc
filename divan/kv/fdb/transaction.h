// A transaction on FoundationDB.
//
// Snapshots, own writes, conflicts and retries are the client's. What is left to do here: keys stand behind
// the store's prefix; a scan conflicts with what its visitor was shown, while the client would count whole
// pages; and commits are exact.
//
// What depends on the transaction's own versionstamp is refused before the client is asked: it would refuse
// the commit, too. And it would hide the version that is read together with those to come, and so what was
// committed last; so versionstamped keys are kept back until the commit, or until a clear may concern them.
//
// A commit whose answer is lost. If the client returns commit_unknown_result, or no answer in the time that
// answers may take, the writes may have been made. So each commit leaves a mark with its writes: a row of the
// engine whose key no other commit uses and whose value is the versionstamp. The commit has also read that
// row. To find the outcome, another transaction reads the mark. If it is there, the commit was made, and the
// value is its versionstamp. If not, that transaction writes to the mark's key; once this is committed, the
// lost commit conflicts with it and can never be made. Only if the cluster does not answer that either,
// commit() throws commit_unknown_result, and on_error() throws it again: a retry might do the transaction
// twice. Marks that are too old to be looked for are cleared with later commits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "divan/kv/fdb/prefetched.h"
#include "divan/kv/fdb/store.h"
#include "divan/kv/range_set.h"
#include "divan/kv/store.h"

namespace divan::kv::fdb {

/// Not thread-safe. The store must outlive it.
class FdbTransaction final : public Transaction {
 public:
  explicit FdbTransaction(Store& store);
  ~FdbTransaction() override;

  bool is_remote() const override { return true; }
  void prefetch(const Prefetch& reads) override;
  std::optional<std::string> get(std::string_view key, Isolation isolation) override;
  std::vector<std::optional<std::string>> get_many(std::span<const std::string> keys,
                                                   Isolation isolation) override;
  std::string get_key(const KeySelector& selector, Isolation isolation) override;
  using Transaction::scan;
  bool scan(const KeySelector& begin, const KeySelector& end, const RangeOptions& options,
            const RowVisitor& visit) override;
  Version read_version() override;
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
  bool read_only() const override { return !has_writes_; }
  Version committed_version() const override { return version_; }
  std::string versionstamp() const override;
  std::size_t approximate_size() const override { return bytes_; }
  void on_error(const Error& error) override;

 protected:
  void do_commit() override;
  void do_reset() override;

 private:
  class Shown;

  void forget();
  void set_options();
  void cancel_watches();
  void check_usable() const;
  void check_readable(std::string_view key) const;
  void check_key(std::string_view key) const;
  static void check_value(std::string_view value);
  void check_range(std::string_view begin, std::string_view end) const;
  [[noreturn]] void fail(FdbError code);
  void await(const Future& future);
  void await_round_trip(const Future& future);
  const std::optional<std::string>* prefetched(std::string_view key, Isolation isolation);
  std::string bound(const KeySelector& selector, Isolation isolation);
  bool scan_readable(const KeyRange& range, const RangeOptions& options, const RowVisitor& visit);
  void give_stamped_keys();
  void clear_stamped(std::string_view begin, std::string_view end);
  void count_write(std::size_t key_bytes, std::size_t value_bytes);
  void count_conflict(std::size_t begin_bytes, std::size_t end_bytes);
  void commit_writes();
  std::optional<FdbError> outcome_of(const Future& commit, const Future& stamp) const;
  void settle(const std::string& mark);
  void stamp_is(std::string stamp);

  Store& store_;
  RawTransaction raw_;
  Prefetched prefetched_;
  std::optional<Version> read_version_;
  std::optional<Future> coming_version_;  // the read version, that came with what was prefetched
  bool has_read_ = false;                 // so the client knows the version
  std::vector<std::shared_ptr<WatchEntry>> watches_;
  RangeSet unreadable_;  // where this transaction's own versionstamp decides
  struct StampedKey {
    std::string key;  // as the client takes it
    std::string value;
  };
  std::vector<StampedKey> stamped_keys_;  // that the client does not know yet
  bool has_writes_ = false;
  bool has_ended_ = false;
  bool is_unsettled_ = false;  // the commit's outcome is not known
  std::size_t bytes_ = 0;
  Version version_ = -1;
  std::string stamp_;
  int attempts_ = 0;
  bool raw_is_reset_ = false;
  FdbError last_error_ = 0;  // the client's, for on_error()
};

}  // namespace divan::kv::fdb
