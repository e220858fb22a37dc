// The ordered, transactional key-value store below all modules, with FoundationDB's semantics
// (https://apple.github.io/foundationdb/developer-guide.html). Engines implement Database and Transaction;
// code above uses only this header.
//
// A transaction reads one version of the store, sees its own writes, and commits only if nothing that it has
// read was changed meanwhile: transactions are strictly serializable. Keys and values are byte strings;
// keys are ordered by their bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeindex>
#include <vector>

#include "divan/base/clock.h"
#include "divan/kv/error.h"
#include "divan/kv/key_range.h"
#include "divan/kv/settle.h"

namespace divan::kv {

// Limits of every engine, so that code that runs on one runs on all.
inline constexpr std::size_t kMaxKeyBytes = 9'900;  // FoundationDB's limit, less an engine's prefix
inline constexpr std::size_t kMaxValueBytes = 100'000;
inline constexpr std::size_t kMaxTransactionBytes = 10'000'000;
inline constexpr Duration kTransactionLifetime = std::chrono::seconds(5);
/// run() fails with transaction_timed_out after so many tries, or a twentieth if each took a transaction's
/// lifetime.
inline constexpr int kMaxAttempts = 200;

/// Numbers the commits: a commit that begins after another was acknowledged has a higher version. Concurrent
/// commits may share a version; their versionstamps differ.
using Version = std::int64_t;

enum class Isolation {
  serializable,  // the commit fails if what was read has changed
  snapshot,      // the commit succeeds all the same
};

struct RangeOptions {
  std::size_t limit = 0;  // rows; 0: no limit
  std::size_t target_bytes =
      0;                 // stop after the row that brings keys and values to this many bytes; 0: no limit
  bool reverse = false;  // from the end of the range to its beginning
  Isolation isolation = Isolation::serializable;
};

struct KeyValue {
  std::string key;
  std::string value;
};

struct RangePage {
  std::vector<KeyValue> rows;
  bool more = false;  // a limit or target cut the page short; there may be more rows
};

/// The reads that a caller knows a transaction will make.
struct Prefetch {
  struct Range {
    KeyRange range;
    std::size_t limit = 0;  // rows; 0: no limit
    bool reverse = false;
  };
  std::vector<std::string> keys;
  std::vector<Range> ranges;

  void key(std::string key) { keys.push_back(std::move(key)); }
  void range(KeyRange range, std::size_t limit = 0, bool reverse = false) {
    ranges.push_back({std::move(range), limit, reverse});
  }
};

/// Receives a row, which is valid during the call. Returns false to stop. It may read in the same
/// transaction, but not write.
using RowVisitor = std::function<bool(std::string_view key, std::string_view value)>;

/// Atomic read-modify-write operations, done at commit without a read (and so without a conflict). Operands
/// and results as in FoundationDB's API reference, "MutationType": add, min and max take little-endian
/// numbers and their result is as long as the operand (a longer value loses its high bytes, a shorter one is
/// filled up with zeros); a missing value is 0 for add and the operand for all others but compare_and_clear.
enum class AtomicOp { add, min, max, byte_min, byte_max, compare_and_clear };

/// Reports that a key's value has changed since the transaction that created the watch. It ends once: it
/// fires, or it is cancelled because its transaction was not committed or the store is closing. It may fire
/// although the value has not changed, and need not fire if the value changed and changed back: read the key
/// again. Once its transaction is committed, it outlives a reset or the destruction of the transaction.
/// Thread-safe.
class Watch {
 public:
  /// Returns true if the watch has fired.
  bool fired() const;
  /// Returns true if the watch was cancelled.
  bool cancelled() const;

  /// Calls `callback` once when the watch ends (immediately if it has ended), on the thread that ends it. The
  /// callback must be quick and must not throw. It may use the store unless the store is closing. A watch has
  /// one callback; a new one replaces the old one.
  void on_end(std::function<void()> callback);

  /// Waits for the end. Returns true if the watch has ended.
  bool wait_until(const Clock& clock, MonotonicTime deadline) const;

  // For engines. Only the first call counts.
  void fire() { end(State::fired); }
  void cancel() { end(State::cancelled); }

 private:
  enum class State { waiting, fired, cancelled };
  void end(State how);

  mutable Mutex mutex_{MutexRank::watch, "Watch::mutex_"};  // protects the members below
  mutable ConditionVariable changed_;
  State state_ = State::waiting;
  std::function<void()> callback_;
};

/// How a try of a transaction ended.
struct CommitOutcome {
  enum class State {
    committed,
    refused,  // nothing was written, and nothing will be: the commit failed, or there was none
    unknown,  // the writes may have been made or may still be made: the store failed or does not respond
  };
  State state = State::refused;
  std::string versionstamp{};  // of the commit: ten bytes, or empty if there was nothing to write

  bool committed() const { return state == State::committed; }
  bool unknown() const { return state == State::unknown; }
  /// The version of the commit; -1 if nothing was written or committed.
  Version version() const;
};

/// One transaction. Not thread-safe: one thread at a time. After commit(), even if it failed, only the
/// results, on_error() and reset() may be called; every other call throws used_during_commit.
///
/// It sees its own writes, also in snapshot reads. A value that its own writes determine is not read from the
/// store: get() of a key that the transaction has set or cleared does not conflict. get() of a key with
/// atomic operations on a stored value does. Whether keys that it has written conflict as part of a range
/// that is read or given to add_read_conflict() is unspecified (FoundationDB leaves them out).
class Transaction {
 public:
  Transaction() = default;
  virtual ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  /// Returns true if a read waits for the network, so that prefetch() pays.
  virtual bool is_remote() const { return false; }

  /// Reads `reads` in one round trip if the store is remote, so that later reads of the same keys and ranges
  /// do not wait. Only those later reads add conflict ranges and return results; a result may be returned
  /// even after the 5 s are over. What is never read is wasted. Does nothing if the store is embedded.
  virtual void prefetch(const Prefetch& /*reads*/) {}

  /// Until the next reset, reads throw would_block rather than wait for the disk or read more than a few
  /// hundred kilobytes: for a thread that many clients share. Does nothing if the engine can only block.
  virtual void forbid_blocking() {}

  /// Until the next reset, what is read from the disk is not kept in the store's cache, where it would
  /// replace what others read: for large values that are probably not read again soon.
  virtual void read_once() {}

  // Reads. They throw transaction_too_old 5 s after the transaction began, key_outside_legal_range for keys
  // above "\xff" (and for reads of single keys that begin with it), and accessed_unreadable if the result
  // depends on this transaction's own versionstamp: for a value that has one, and anywhere between the
  // smallest and the largest key that a versionstamped key may become, from the version after the read
  // version on. A set() there does not make it readable again, a clear() or clear_range() does. Keys longer
  // than the limit do not exist.

  virtual std::optional<std::string> get(std::string_view key,
                                         Isolation isolation = Isolation::serializable) = 0;

  /// Several reads, concurrent if the store is remote. Returns the values in the order of `keys`.
  virtual std::vector<std::optional<std::string>> get_many(std::span<const std::string> keys,
                                                           Isolation isolation = Isolation::serializable) = 0;

  /// Visits the rows of the range. Returns true if the limit or the target cut it short, whether or not a row
  /// follows, and false if the visitor stopped. The visitor may write in this transaction; it does not
  /// receive what it writes before the present row, and may or may not receive what it writes after it. The
  /// rows that the visitor received have been read, even if it throws; what a page does not need of the range
  /// after its last row does not conflict. Throws inverted_range.
  virtual bool scan(const KeyRange& range, const RangeOptions& options, const RowVisitor& visit) = 0;
  RangePage get_range(const KeyRange& range, const RangeOptions& options = {});

  /// The version that this transaction reads.
  virtual Version read_version() = 0;

  // Writes. They throw key_too_large, value_too_large (a versionstamp's offset counts), inverted_range, and
  // key_outside_legal_range for keys that begin with "\xff". The bounds of a range may be longer than keys.

  virtual void set(std::string_view key, std::string_view value) = 0;
  virtual void clear(std::string_view key) = 0;
  virtual void clear_range(std::string_view begin, std::string_view end) = 0;
  void clear_range(const KeyRange& range) { clear_range(range.begin, range.end); }
  virtual void atomic(AtomicOp op, std::string_view key, std::string_view operand) = 0;

  /// Adds to a little-endian 64-bit counter; a missing key counts from 0. decode_counter() reads it.
  void add(std::string_view key, std::int64_t delta);

  /// `key` ends with four bytes, a little-endian offset into the rest of it, where the commit puts the
  /// transaction's ten-byte versionstamp. tuple.h packs such keys. Throws client_invalid_operation if the
  /// stamp does not fit there.
  virtual void set_versionstamped_key(std::string_view key, std::string_view value) = 0;
  /// The same for the value.
  virtual void set_versionstamped_value(std::string_view key, std::string_view value) = 0;

  /// A watch on the key's value as this transaction sees it now. It is set at the commit, and fires there if
  /// the commit leaves another value, also one that this transaction wrote. May conflict like a get(). Throws
  /// too_many_watches if the store has its maximum of watches that have not ended, including those of open
  /// transactions.
  virtual std::shared_ptr<Watch> watch(std::string_view key) = 0;
  /// As watch(), but returns null if the store has too many watches.
  ///
  /// All code that waits for a change of rows waits in the same way. A transaction reads the rows and watches
  /// a key that changes with them. After its commit the waiter sets a callback (Watch::on_end()) that
  /// notifies its Notifier or WorkerLoop, waits, and reads the rows again. No change is lost: one between the
  /// read and the commit fires the watch at the commit, and on_end() calls at once if the watch has ended.
  /// Without a watch the waiter waits for a time and reads again, so that a store with too many watches
  /// serves late and does not fail.
  std::shared_ptr<Watch> try_watch(std::string_view key);

  // Conflict ranges in addition to those of reads and writes. They throw inverted_range and
  // key_outside_legal_range. An empty range has no effect.
  virtual void add_read_conflict(const KeyRange& range) = 0;
  virtual void add_write_conflict(const KeyRange& range) = 0;

  /// Makes the writes durable and visible, all or none, then runs the on_outcome() callbacks. Throws
  /// not_committed, transaction_too_old (if it has read and writes, more than 5 s after it began),
  /// transaction_too_large, io_error, and commit_unknown_result. A commit that throws cancels the watches.
  /// If the store's response is lost, commit() settles the outcome before it returns or throws (see
  /// settle.h); the watches are cancelled then, even if the commit was made. Only after io_error and
  /// commit_unknown_result, which says that settling failed as well, may the writes have been made.
  void commit();

  /// Begins commit() if that would block: returns true, and calls `done` once when commit() does not block
  /// any more. commit() must be called then, and nothing else before. `done` may be called during the call,
  /// or on a thread of the engine; it must be quick, and must not throw or use the store. Returns false if
  /// commit() does not block, or if the engine can only block. Throws what commit() throws before it writes.
  virtual bool start_commit(std::function<void()> /*done*/) { return false; }

  /// Returns true if commit() would probably block for less than a millisecond. A thread that has nothing
  /// else to do then calls it at once: to be woken after start_commit() would take as long.
  virtual bool commits_quickly() const { return false; }

  /// Returns true if there is nothing to write: commit() then succeeds whatever other transactions do.
  virtual bool read_only() const = 0;

  /// The version of the commit; -1 if nothing was written or committed.
  Version committed_version() const { return outcome_.version(); }

  /// The ten bytes that the commit put into versionstamped keys and values. Throws client_invalid_operation
  /// if nothing was written or committed.
  std::string versionstamp() const;

  /// A user version for a versionstamp (tuple.h) that no other call in this transaction returns: 0, 1, and so
  /// on, from 0 again after reset(). For rows that several callers write and that only their versionstamps
  /// distinguish. Throws transaction_too_large after 65,536 calls, since a user version has no more values
  /// than that.
  std::uint16_t claim_user_version();

  /// Bytes that count towards kMaxTransactionBytes so far: keys and values of the writes, and the conflict
  /// ranges, which engines count differently.
  virtual std::size_t approximate_size() const = 0;

  /// Waits for a time that grows with the number of tries, and resets the transaction for another try. Throws
  /// the error again if it is not retryable(), or transaction_timed_out after kMaxAttempts; then only reset()
  /// may be called.
  virtual void on_error(const Error& error) = 0;
  /// on_error() for callers that do not block: returns the time after which restart() must be called, and
  /// nothing else before. An engine that can only block does so here. Throws as on_error() does.
  virtual Duration start_retry(const Error& error) {
    on_error(error);
    return Duration(0);
  }
  virtual void restart() {}

  /// Makes the transaction new, with a new read version and no tries used.
  void reset();

  using OutcomeCallback = std::function<void(const CommitOutcome&)>;
  /// Calls `callback` once when this try ends: in commit() with the settled outcome, or as refused at a reset
  /// or the destruction of a transaction that was not committed. Callbacks run in order on the thread that
  /// ends the try. They must not throw and must not use this transaction, but may use others.
  void on_outcome(OutcomeCallback callback) { callbacks_.push_back(std::move(callback)); }
  /// on_outcome() for callers that need to know of commits only.
  void after_commit(std::function<void()> callback);

  /// This try's object of type T that belongs to `owner`: made at first use, destroyed at a reset or with the
  /// transaction, after the on_outcome() callbacks. For what a module gathers between calls.
  template <class T>
  T& slot(const void* owner = nullptr) {
    const std::pair<std::type_index, const void*> id(typeid(T), owner);
    for (const auto& [known, object] : slots_) {
      if (known == id) return *static_cast<T*>(object.get());
    }
    slots_.emplace_back(id, std::make_shared<T>());
    return *static_cast<T*>(slots_.back().second.get());
  }

 protected:
  /// Returns the commit's versionstamp, or "" if there was nothing to write.
  virtual std::string do_commit() = 0;
  virtual void do_reset() = 0;

  // For stores that may lose the response to a commit, which is thrown as commit_unknown_result. See
  // settle.h.

  /// Random bytes that distinguish this commit's record; empty if this store loses no response.
  virtual std::string new_commit_record_id() { return {}; }
  /// The prefix of the commit records' keys.
  virtual std::string commit_record_prefix() const;
  /// A transaction of the same store that reaches the commit records.
  virtual std::unique_ptr<Transaction> begin_settling() { return nullptr; }

 private:
  std::optional<CommitRecord> add_commit_record();
  std::string settle(const CommitRecord& record);
  void end_try();

  std::vector<OutcomeCallback> callbacks_;
  std::vector<std::pair<std::pair<std::type_index, const void*>, std::shared_ptr<void>>> slots_;
  CommitOutcome outcome_;
  std::uint32_t user_versions_ = 0;  // claimed so far
};

/// A store. Thread-safe.
class Database {
 public:
  virtual ~Database() = default;

  virtual std::unique_ptr<Transaction> begin() = 0;

  /// Visits all rows as they are at one version, however long that takes, and returns that version. Rows are
  /// valid during the call; a visitor that returns false ends the visit. Throws io_error.
  virtual Version dump(const RowVisitor& visit) = 0;

  /// Returns about how many bytes the engine stores for the range. The estimate is useful for ranges of
  /// megabytes and arbitrary for smaller ones; recent rows may count zero or several times. Reads no rows.
  /// Throws io_error.
  virtual std::int64_t estimate_bytes(const KeyRange& range) = 0;

  /// Makes the versions of later commits greater than `at_least`: rows that come from another store contain
  /// its versionstamps, and new ones must be greater. Throws io_error.
  virtual void advance_version(Version at_least) = 0;

  /// Runs `fn(Transaction&)` and commits; again from the beginning after an error that is retryable(), so
  /// `fn` must be repeatable. Returns what `fn` returned in the committed try. Writes are made once, even if
  /// the response to a commit is lost: its outcome is settled before the next try begins. Throws
  /// commit_unknown_result if it cannot be settled.
  template <class Fn>
  auto run(Fn&& fn) -> std::invoke_result_t<Fn&, Transaction&> {
    const auto tx = begin();
    for (;;) {
      try {
        if constexpr (std::is_void_v<std::invoke_result_t<Fn&, Transaction&>>) {
          fn(*tx);
          return tx->commit();
        } else {
          auto result = fn(*tx);
          tx->commit();
          return result;
        }
      } catch (const Error& error) { tx->on_error(error); }
    }
  }
};

/// Decodes a counter of Transaction::add(); 0 if it is missing.
std::int64_t decode_counter(const std::optional<std::string>& value);
std::int64_t decode_counter(std::string_view value);

/// Returns the result of an atomic operation on a value; nullopt if the key is cleared. For engines.
std::optional<std::string> apply_atomic(AtomicOp op, const std::optional<std::string>& value,
                                        std::string_view operand);

}  // namespace divan::kv
