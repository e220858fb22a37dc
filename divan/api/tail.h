// The ends of feeds, read once for all who follow them.
//
// A write may concern thousands of open feeds. Were each to read the store for the new rows, one write would
// cost thousands of reads. So the feeds that show the same rows share a Tail: at an event it reads what is
// new, once, and then has its feeds take their steps, one after the other on one thread. A feed that is
// further behind than the tail reaches back (it has just begun, or its client is slow) reads the store
// itself, on a thread of the requests, until it has caught up.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <deque>
#include <functional>
#include <vector>

#include "divan/api/feed.h"
#include "divan/base/striped.h"
#include "divan/base/thread_pool.h"
#include "divan/kv/tuple_versionstamp.h"

namespace divan::api {

/// A row of a feed, its place, and what it is a row of: a document's id, a database's name.
struct PlacedRow {
  kv::Versionstamp place;
  std::string key;
  FeedRow row;
};

/// Whether a feed shows the rows of this key. Not set: it shows all.
using Wanted = std::function<bool(std::string_view key)>;

/// Rows in the order in which they were asked for.
struct RowPage {
  std::vector<PlacedRow> rows{};
  kv::Versionstamp place;  ///< of the last row that was looked at; where the page began if there was none
  bool more = false;       ///< whether there may be more rows behind `place` at once
  bool ended = false;      ///< there are no rows, and there will be none: what the feed is of is gone
};

/// Reads the rows of a feed from the store. Thread-safe.
class RowReader {
 public:
  virtual ~RowReader() = default;

  /// Up to `limit` wanted rows after `since`.
  virtual RowPage read(const kv::Versionstamp& since, std::size_t limit, const Wanted& wanted) const = 0;

  /// The same from the other end: those before `before` (all, if it is nothing) and after `since`, the last
  /// one first.
  virtual RowPage read_backwards(const kv::Versionstamp& since, const std::optional<kv::Versionstamp>& before,
                                 std::size_t limit, const Wanted& wanted) const = 0;

  /// The place of the last row that there is.
  virtual kv::Versionstamp last() const = 0;

  /// How many rows come after `place`, if that is known. For feeds that say so.
  virtual std::optional<std::int64_t> pending(const kv::Versionstamp&) const { return std::nullopt; }
};

class Tails;

/// The place up to which a feed has read. Thread-safe.
class Reached {
 public:
  explicit Reached(const kv::Versionstamp& place) : place_(place) {}
  void set(const kv::Versionstamp& place) {
    std::lock_guard lock(mutex_);
    place_ = place;
  }
  kv::Versionstamp get() const {
    std::lock_guard lock(mutex_);
    return place_;
  }

 private:
  mutable std::mutex mutex_;
  kv::Versionstamp place_;
};

/// The last rows of one feed. Thread-safe.
class Tail : public std::enable_shared_from_this<Tail> {
 public:
  /// Reads from `reader` when there is an event on the channel.
  Tail(Tails& tails, std::shared_ptr<const RowReader> reader, std::string channel);

  /// From now on the feed takes a step whenever there are new rows, as long as it lives: here if the tail has
  /// what comes after `reached`, else on a thread of the requests.
  void follow(const std::shared_ptr<Task>& feed, std::shared_ptr<const Reached> reached);

  /// Up to `limit` wanted rows after `since`; nothing if the tail does not reach back to it.
  std::optional<RowPage> read(const kv::Versionstamp& since, std::size_t limit, const Wanted& wanted) const;

  /// How many rows come after `since`; nothing if the tail does not know.
  std::optional<std::int64_t> pending(const kv::Versionstamp& since) const;

 private:
  enum class State { idle, queued, running, running_and_woken };

  struct Follower {
    std::weak_ptr<Task> feed;
    std::shared_ptr<const Reached> reached;
  };

  void begin();
  void wake();
  void submit();
  void run();
  bool read_on();
  void wake_feeds();
  void trim(std::size_t most_bytes);
  std::deque<PlacedRow>::const_iterator first_after(const kv::Versionstamp& place) const;

  Tails& tails_;
  const std::shared_ptr<const RowReader> reader_;
  const std::string channel_;

  std::mutex followers_mutex_;
  std::vector<Follower> followers_;
  std::size_t clean_at_ = 64;  // when there are so many, those that are gone are taken out
  std::optional<events::Subscription> subscription_;

  mutable std::mutex mutex_;
  State state_ = State::idle;
  bool begun_ = false;     // begin_ and end_ are places; until then all feeds read for themselves
  bool is_whole_ = false;  // all rows after begin_ and up to end_ are in rows_
  bool ended_ = false;
  bool at_end_ = true;  // there was nothing after end_ when it was read
  kv::Versionstamp begin_, end_;
  std::deque<PlacedRow> rows_;
  std::size_t bytes_ = 0;
};

/// What feeds have cost.
struct TailStats {
  std::uint64_t reads;      ///< of the store, each for all feeds that follow a tail
  std::uint64_t own_reads;  ///< of the store, by a feed for itself
  std::size_t tails;
};

/// All tails of a process, and the threads on which they wake their feeds. Thread-safe. It must outlive the
/// feeds.
class Tails {
 public:
  explicit Tails(events::Bus& bus);

  /// The tail of this name, which is made if nobody follows it.
  std::shared_ptr<Tail> get(const std::string& name, const std::string& channel,
                            const std::shared_ptr<const RowReader>& reader);

  /// Wakes no feed any more. Idempotent.
  void stop() { threads_.stop(); }

  void count_own_read() { own_reads_.add(1); }
  TailStats stats();

 private:
  friend class Tail;

  void remove_unused();

  events::Bus& bus_;
  StripedCounter reads_, own_reads_;
  std::mutex mutex_;
  absl::flat_hash_map<std::string, std::weak_ptr<Tail>> tails_;
  std::size_t clean_at_ = 64;  // when there are so many, those that are gone are taken out
  ThreadPool threads_;
};

/// What a feed of rows shows, beside what all feeds can be asked for.
struct RowFeed {
  std::shared_ptr<const RowReader> reader;
  std::string tail;     ///< the name of its tail: that of all feeds whose readers read the same rows alike
  std::string channel;  ///< where it is told that there are new rows
  kv::Versionstamp since{};
  bool descending = false;  ///< from the last row to `since`, and no further: the mode is normal
  bool pending = false;     ///< the answer's end says how many rows there are after its last one
  /// CouchDB's `seq_interval`: only every so many rows have a `seq`, those for which the rows that may still
  /// come (`limit`) are a multiple of it; the others have null. 0: all have one.
  std::uint64_t seq_interval = 0;
  std::uint64_t limit = 1'000'000'000'000'000;  ///< for seq_interval; CouchDB's if there is none
  Wanted wanted{};
};

/// Answers a request with a feed of rows.
void start_row_feed(const Context& context, CallPtr call, FeedOptions options, RowFeed feed);

}  // namespace divan::api
