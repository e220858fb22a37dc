// A connection to a cluster, and the client's own transactions: with the cluster's keys, and futures that are
// waited for.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <string>

#include "divan/kv/fdb/client.h"
#include "divan/kv/fdb/errors.h"
#include "divan/kv/fdb/future.h"
#include "divan/kv/store.h"

namespace divan::kv::fdb {

/// For messages.
inline double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// A connection to a cluster. Thread-safe. The client and the clock must outlive it.
class Cluster {
 public:
  /// `file` is the path of the cluster file; empty: the client's default. Does not wait for the cluster.
  /// Throws divan::Error 500 that names the file.
  Cluster(const Client& client, const std::string& file, const Clock& clock, Duration answer_timeout);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  const Api& api() const { return client_.api(); }
  const Client& client() const { return client_; }
  const Clock& clock() const { return clock_; }
  FdbDatabaseHandle* handle() const { return handle_; }
  void set_option(DatabaseOption option, std::int64_t value) const;

  /// Waits until the future is ready. Returns 0 or its error. Throws transaction_timed_out if it does not
  /// become ready.
  FdbError outcome_of(const Future& future) const;
  /// The same, but throws the error.
  void await(const Future& future) const;

  /// Counts a wait for the cluster: for one response or for several requests that were sent together. A
  /// request that the client makes by itself before (for a read version, say) is not counted.
  void count_round_trip() const { ++round_trips_; }
  std::uint64_t round_trips() const { return round_trips_; }
  /// Counts a transaction with writes whose response has come: committed, or refused for a conflict.
  void count_commit(bool conflicted) const { ++(conflicted ? conflicts_ : commits_); }
  std::uint64_t commits() const { return commits_; }
  std::uint64_t conflicts() const { return conflicts_; }

 private:
  const Client& client_;
  const Clock& clock_;
  const Duration answer_timeout_;
  FdbDatabaseHandle* handle_ = nullptr;
  mutable std::atomic<std::uint64_t> round_trips_ = 0, commits_ = 0, conflicts_ = 0;
};

/// One page of a range.
struct RangeRequest {
  std::string_view begin;
  std::string_view end;
  int limit = 0;
  int target_bytes = 0;
  StreamingMode mode = StreamingMode::want_all;
  int iteration = 0;
  bool reverse = false;
};

/// One of the client's transactions. Not thread-safe. The cluster must outlive it.
class RawTransaction {
 public:
  explicit RawTransaction(const Cluster& cluster);
  ~RawTransaction() { api_.transaction_destroy(handle_); }
  RawTransaction(const RawTransaction&) = delete;
  RawTransaction& operator=(const RawTransaction&) = delete;

  const Cluster& cluster() const { return cluster_; }

  void set_option(TransactionOption option, std::string_view value = {});
  void set_read_version(Version version) { api_.transaction_set_read_version(handle_, version); }

  Future read_version();
  Future get(std::string_view key, bool snapshot);
  Future get_range(const RangeRequest& request);  // as a snapshot
  Future estimated_bytes(std::string_view begin, std::string_view end);
  Future watch(std::string_view key);
  Future versionstamp();
  Future commit();
  Future on_error(FdbError code);

  void set(std::string_view key, std::string_view value);
  void clear(std::string_view key);
  void clear_range(std::string_view begin, std::string_view end);
  void mutate(Mutation mutation, std::string_view key, std::string_view operand);
  void add_conflict(ConflictRange type, std::string_view begin, std::string_view end);
  Version committed_version() const;
  void reset() { api_.transaction_reset(handle_); }

  // Of futures that are ready and have no error.
  std::int64_t number_in(const Future& future) const;
  std::string key_in(const Future& future) const;
  std::optional<std::string> value_in(const Future& future) const;
  /// Valid as long as the future.
  std::span<const FdbKeyValue> rows_in(const Future& future, bool& more) const;

 private:
  Future future(FdbFuture* future) const { return {api_, future}; }

  const Cluster& cluster_;
  const Api& api_;
  FdbTransactionHandle* handle_ = nullptr;
};

/// Runs `fn(RawTransaction&)` and commits, again after errors that the client calls retryable. For small
/// transactions of the engine itself, which must be idempotent.
template <class Fn>
void run_raw(const Cluster& cluster, Fn&& fn) {
  RawTransaction tx(cluster);
  for (int tries = 1;; ++tries) {
    FdbError code = fn(tx);
    if (code == 0) code = cluster.outcome_of(tx.commit());
    if (code == 0) return;
    if (tries >= kMaxAttempts) throw Error(ErrorCode::transaction_timed_out);
    cluster.await(tx.on_error(code));
  }
}

}  // namespace divan::kv::fdb
