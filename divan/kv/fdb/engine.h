// The engine of many processes: a FoundationDB cluster.
#pragma once

#include <memory>
#include <string>

#include "divan/kv/fdb/store.h"
#include "divan/kv/store.h"

namespace divan::kv::fdb {

/// The format of the rows in a cluster that this version writes, and the oldest that it reads.
/// docs/storage.md
inline constexpr int kFormat = 10;
inline constexpr int kOldestFormat = 1;

inline constexpr std::size_t kMaxNameBytes = 32;
inline constexpr std::size_t kMaxTagBytes = 16;

struct Options {
  std::string cluster_file;    // empty: the default of FoundationDB's client
  std::string name = "divan";  // the prefix of all keys is the tuple (name); at most kMaxNameBytes
  std::string tag;             // FoundationDB's tag of the transactions, to throttle them by; empty: none
  Duration start_timeout = std::chrono::seconds(10);
  // If the cluster does not respond to a read for so long, the transaction fails with transaction_timed_out.
  // A commit is settled then.
  Duration answer_timeout = std::chrono::seconds(10);
  std::size_t max_watches = 10'000;
  // The store must be empty, or unfinished: then its rows are cleared. No other process opens it until
  // finish().
  bool unfinished = false;
  bool raises_format = true;  // if the store has an older one; older versions then refuse the store
  ClientOptions client;
};

/// A kv::Database in a cluster, which several processes may open. Thread-safe. Transactions must not outlive
/// it.
class FdbDatabase final : public Database {
 public:
  /// Waits for the cluster, and makes a store there if there is none. Throws divan::Error 500 with a reason
  /// in one line: the client library is missing or too old, there is no cluster file, the cluster does not
  /// respond within the timeout, or the rows there have another format or are not Divan's. The clock and rng
  /// must outlive the database; the clock must be the machine's.
  FdbDatabase(const Options& options, const Clock& clock, Rng& rng);
  ~FdbDatabase() override;

  std::unique_ptr<Transaction> begin() override;
  Version dump(const RowVisitor& visit) override;
  std::int64_t estimate_bytes(const KeyRange& range) override;
  void advance_version(Version at_least) override;

  /// Marks an unfinished store as complete, so that it can be opened.
  void finish();

  /// How often a thread has waited for the cluster since this object was made.
  std::uint64_t round_trips() const { return store_.cluster.round_trips(); }
  std::uint64_t commits() const { return store_.cluster.commits(); }
  std::uint64_t conflicts() const { return store_.cluster.conflicts(); }

 private:
  void await_settled();

  Store store_;
};

/// Clears the store of these options, whatever is in it. No process may have it open.
void erase_store(const Options& options, const Clock& clock);

}  // namespace divan::kv::fdb
