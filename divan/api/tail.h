// The ends of feeds, read once for all followers.
//
// A write may concern thousands of open feeds. If each of them read the new rows from the store, one write
// would cost thousands of reads. Feeds that show the same rows therefore share a Tail. At an event it reads
// the new rows once, and then continues its feeds, one after the other on one thread. A feed whose position
// is before the beginning of the tail (it has just begun, or its client is slow) reads the store itself, on a
// worker thread, until it has caught up.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <deque>
#include <functional>
#include <vector>

#include "divan/api/feed.h"
#include "divan/api/function_threads.h"
#include "divan/base/fair_thread_pool.h"
#include "divan/base/mutex.h"
#include "divan/base/striped.h"
#include "divan/base/thread_pool.h"
#include "divan/kv/tuple_versionstamp.h"

namespace divan::api {

/// A row of a feed, its position, and its key: a document's id or a database's name.
struct FeedEntry {
  kv::Versionstamp position;
  std::string key;
  FeedRow row;
};

/// Returns true for the keys whose rows a feed shows. An empty function selects all rows.
using RowFilter = std::function<bool(std::string_view key)>;

/// Rows in the requested order.
struct RowPage {
  std::vector<FeedEntry> rows{};
  kv::Versionstamp position;  ///< of the last scanned row; where the page began if there was none
  bool more = false;          ///< whether more rows may be available after `position`
  bool ended = false;         ///< whether the feed has ended: its database was deleted, or it was disabled
};

/// Reads the rows of a feed from the store. Thread-safe.
class RowReader {
 public:
  virtual ~RowReader() = default;

  /// Returns up to `limit` rows after `since` that `filter` selects.
  virtual RowPage read(const kv::Versionstamp& since, std::size_t limit, const RowFilter& filter) const = 0;

  /// The same in descending order: rows before `before` (all, if it is nullopt) and after `since`.
  virtual RowPage read_backwards(const kv::Versionstamp& since, const std::optional<kv::Versionstamp>& before,
                                 std::size_t limit, const RowFilter& filter) const = 0;

  /// The position of the last row.
  virtual kv::Versionstamp last() const = 0;

  /// If it tests documents, which takes time that its client determines: where it must be read, so that it
  /// does not hold up feeds of others.
  struct Filtering {
    std::int64_t database = 0;
    bool calls_functions = false;  ///< it must be read on Context::function_threads
  };
  virtual std::optional<Filtering> filtering() const { return std::nullopt; }

  /// The number of rows after a position, if known. Used by feeds that report it.
  virtual std::optional<std::int64_t> pending(const kv::Versionstamp&) const { return std::nullopt; }
};

class Tails;

/// The last rows of one feed, in memory. Thread-safe.
class Tail : public std::enable_shared_from_this<Tail> {
 public:
  /// Reads from `reader` when there is an event on the channel.
  Tail(Tails& tails, std::shared_ptr<const RowReader> reader, std::string channel);

  /// Registers a feed: as long as its waker exists, it is woken whenever there are new rows, on a thread of
  /// `tails`, on which it must only read what the tail has.
  void follow(const std::shared_ptr<Waker>& feed);

  /// As RowReader::read(), but returns nullopt if the tail begins after `since`.
  std::optional<RowPage> read(const kv::Versionstamp& since, std::size_t limit,
                              const RowFilter& filter) const;

  /// The number of rows after `since`; nullopt if unknown.
  std::optional<std::int64_t> pending(const kv::Versionstamp& since) const;

 private:
  enum class State { idle, queued, running, running_and_woken };

  void begin();
  void wake();
  void submit();
  void run();
  bool read_new_rows();
  void wake_feeds();
  void trim(std::size_t most_bytes);
  std::deque<FeedEntry>::const_iterator first_after(const kv::Versionstamp& position) const;

  Tails& tails_;
  const std::shared_ptr<const RowReader> reader_;
  const std::string channel_;

  // Protects the members below up to mutex_.
  Mutex followers_mutex_{MutexRank::tail_followers, "Tail::followers_mutex_"};
  std::vector<std::weak_ptr<Waker>> followers_;
  std::size_t clean_at_ = 64;  // number of followers at which destroyed ones are removed
  std::optional<events::Subscription> subscription_;

  mutable Mutex mutex_{MutexRank::tail, "Tail::mutex_"};  // protects the members below
  State state_ = State::idle;
  bool begun_ = false;     // begin_ and end_ are set; until then all feeds read the store themselves
  bool is_whole_ = false;  // rows_ has all rows after begin_ up to end_
  bool ended_ = false;
  bool at_end_ = true;  // the last read found no rows after end_
  kv::Versionstamp begin_, end_;
  std::deque<FeedEntry> rows_;
  std::size_t bytes_ = 0;
};

/// The number of reads for feeds.
struct TailStats {
  std::uint64_t reads;      ///< of the store by tails, each for all of its feeds
  std::uint64_t own_reads;  ///< of the store by individual feeds
  std::size_t tails;
};

/// All tails of a process, and the threads on which they continue their feeds. Thread-safe. Must outlive the
/// feeds.
class Tails {
 public:
  /// `function_threads` is for readers that call functions.
  Tails(events::Bus& bus, FunctionThreads& function_threads);

  /// Returns the tail with this name; creates it if no feed has it.
  std::shared_ptr<Tail> get(const std::string& name, const std::string& channel,
                            const std::shared_ptr<const RowReader>& reader);

  /// Wakes no more feeds, once `function_threads` is stopped, too. Idempotent.
  void stop() {
    threads_.stop();
    selecting_threads_.stop();
  }

  void count_own_read() { own_reads_.add(1); }
  TailStats stats();

 private:
  friend class Tail;

  void remove_unused();

  events::Bus& bus_;
  StripedCounter reads_, own_reads_;
  Mutex mutex_{MutexRank::tails, "Tails::mutex_"};  // protects the two members below
  absl::flat_hash_map<std::string, std::weak_ptr<Tail>> tails_;
  std::size_t clean_at_ = 64;  // number of tails at which destroyed ones are removed
  ThreadPool threads_;
  FairThreadPool selecting_threads_;  // of tails that test documents with selectors; keys: databases
  FunctionThreads& function_threads_;
};

/// The options of a row feed, in addition to FeedOptions.
struct RowFeed {
  std::shared_ptr<const RowReader> reader;
  std::string tail;     ///< the tail's name: shared by all feeds whose readers return the same rows
  std::string channel;  ///< of the bus; has an event when there are new rows
  kv::Versionstamp since{};
  bool descending = false;  ///< from the last row back to `since`; the mode must be normal
  bool pending = false;     ///< the response ends with the number of rows after its last one
  /// CouchDB's `seq_interval`: a row has a `seq` only if the number of rows that may still come (`limit`) is
  /// a multiple of it; other rows have null. 0: all rows have one.
  std::uint64_t seq_interval = 0;
  std::uint64_t limit = 1'000'000'000'000'000;  ///< for seq_interval; the default is CouchDB's
  RowFilter filter{};
};

/// Responds to a request with a feed of rows.
Async<RouteResult> respond_with_rows(const Context& context, Call& call, FeedOptions options, RowFeed feed);

}  // namespace divan::api
