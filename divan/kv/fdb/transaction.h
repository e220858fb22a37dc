// A transaction on FoundationDB.
//
// The client implements snapshots, own writes, conflicts and retries. This adds: the store's prefix before
// keys; conflicts of a scan with the rows that its visitor received, where the client would count whole
// pages; and a commit whose response does not come in time fails with commit_unknown_result, so that it is
// settled (kv/settle.h) like one for which the client returns that error. Its commit record is one of the
// engine's rows.
//
// Reads that depend on the transaction's own versionstamp are refused before the client is called, since the
// client would then refuse the commit, too. The client would also make keys unreadable that have the read
// version itself, and so rows of the last commit. So versionstamped keys are passed to the client at the
// commit, or when a clear may concern them.
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
  explicit FdbTransaction(Store& store, bool settles = false);
  ~FdbTransaction() override;

  bool is_remote() const override { return true; }
  void prefetch(const Prefetch& reads) override;
  std::optional<std::string> get(std::string_view key, Isolation isolation) override;
  std::vector<std::optional<std::string>> get_many(std::span<const std::string> keys,
                                                   Isolation isolation) override;
  bool scan(const KeyRange& range, const RangeOptions& options, const RowVisitor& visit) override;
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
  std::size_t approximate_size() const override { return bytes_; }
  void on_error(const Error& error) override;

 protected:
  std::string do_commit() override;
  void do_reset() override;
  std::string new_commit_record_id() override;
  std::string commit_record_prefix() const override;
  std::unique_ptr<Transaction> begin_settling() override;

 private:
  class Shown;

  void forget();
  void set_options();
  void cancel_watches();
  std::string_view end_of_keys() const;
  void check_usable() const;
  void check_readable(std::string_view key) const;
  void check_key(std::string_view key) const;
  static void check_value(std::string_view value);
  void check_range(std::string_view begin, std::string_view end) const;
  [[noreturn]] void fail(FdbError code);
  void await(const Future& future);
  void await_round_trip(const Future& future);
  const std::optional<std::string>* prefetched(std::string_view key, Isolation isolation);
  bool scan_readable(const KeyRange& range, const RangeOptions& options, const RowVisitor& visit);
  void give_stamped_keys();
  void clear_stamped(std::string_view begin, std::string_view end);
  void count_write(std::size_t key_bytes, std::size_t value_bytes);
  void count_conflict(std::size_t begin_bytes, std::size_t end_bytes);
  std::string commit_writes();
  std::optional<FdbError> outcome_of(const Future& commit, const Future& stamp) const;

  Store& store_;
  const bool settles_;  // it settles another commit, so it reaches the commit records
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
  bool writes_commit_record_ = false;  // the commit has begun, and writes its record
  std::size_t bytes_ = 0;
  int attempts_ = 0;
  bool raw_is_reset_ = false;
  FdbError last_error_ = 0;  // the client's, for on_error()
};

}  // namespace divan::kv::fdb
