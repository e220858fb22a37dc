// Feeds: the rows after a sequence, and then new rows as they arrive. `_changes`, `_db_updates`, a job's
// state and the members of a role all work like this; they differ in the source of rows (FeedSource).
//
//   normal       the existing rows, as a JSON object
//   longpoll     the same, but waits for the first rows if there are none
//   continuous   rows as lines of JSON, without end
//   eventsource  rows as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html)
//
// An idle feed holds a connection, a subscription and a timer, but no thread.
#pragma once

#include "divan/api/request_waiter.h"
#include "divan/api/routes.h"

namespace divan::api {

struct FeedRow {
  std::string json;
  std::string seq;  // empty: the feed has no sequences, and cannot be resumed
};

/// The source of a feed's rows. Not thread-safe.
class FeedSource {
 public:
  virtual ~FeedSource() = default;

  /// Called before each read. From then on the source must wake the feed when there may be rows that the read
  /// does not return. It may wake it without need, and after the source has ended.
  virtual void arm(const RequestWaiter& waiter) = 0;

  /// Appends up to `limit` rows and advances the position; returns true if more rows may be available at
  /// once. May block. Overridden by sources whose read_memory() may return nullopt.
  virtual bool read(std::size_t limit, std::vector<FeedRow>& rows) { return *read_memory(limit, rows); }
  /// The database whose functions read() calls, on Context::function_threads; nullopt: it calls none.
  virtual std::optional<std::int64_t> function_database() const { return std::nullopt; }
  /// The same without blocking; nullopt if the rows are not in memory.
  virtual std::optional<bool> read_memory(std::size_t /*limit*/, std::vector<FeedRow>& /*rows*/) {
    return std::nullopt;
  }

  /// The sequence up to which rows have been read; empty if the feed has no sequences.
  virtual std::string last_seq() const = 0;

  /// The number of rows after last_seq(), if known. May block unless knows_pending().
  virtual std::optional<std::int64_t> pending() { return std::nullopt; }
  virtual bool knows_pending() const { return true; }

  /// Returns true if the feed has ended: no rows will follow.
  virtual bool ended() const { return false; }

  /// The maximum time until the next read, if the source cannot rely on being woken.
  virtual std::optional<std::chrono::milliseconds> read_again_after() const { return std::nullopt; }
};

/// A source that waits for a watch on the store, or polls if the store has too many watches.
class WatchingSource : public FeedSource {
 public:
  void arm(const RequestWaiter& waiter) override { wake_ = waiter.callback(); }
  std::optional<std::chrono::milliseconds> read_again_after() const override;

 protected:
  /// Called in the transaction that reads: `make_watch()` returns a watch on what it reads, or null to poll.
  template <class Fn>
  void watch(Fn&& make_watch) {
    watch_ = nullptr;  // first, since the store may be at its limit
    watch_ = make_watch();
  }
  /// Called after the transaction.
  void wait() {
    if (watch_ != nullptr) watch_->on_end(wake_);
  }

 private:
  std::function<void()> wake_;
  std::shared_ptr<kv::Watch> watch_;
};

enum class FeedMode { normal, longpoll, continuous, eventsource };

struct FeedOptions {
  FeedMode mode = FeedMode::normal;
  std::optional<std::uint64_t> limit;
  std::optional<std::chrono::milliseconds> heartbeat;
  std::chrono::milliseconds timeout{60'000};  // of waiting for rows; ignored if there is a heartbeat
  http::Headers headers{};                    // additional fields of the response
};

/// Parses feed, limit, heartbeat (true, false or milliseconds) and timeout. Throws bad_request.
FeedOptions parse_feed_options(const Call& call);

/// `since`, or the id of the last event of an event source that reconnects: the header Last-Event-ID, or the
/// parameter `last-event-id`.
std::optional<std::string> since_param(const Call& call);

/// Parses `since` (except "now"). Throws bad_request (400) if it is malformed, or greater than the
/// transaction's read version: such a sequence is from another store, or from a state that a restore has
/// undone, and no rows would ever follow it.
kv::Versionstamp parse_since(kv::Transaction& tx, std::string_view since);

/// Responds to a request with a feed. May be called on an io thread if the source's read_memory() has all
/// rows.
Async<RouteResult> respond_with_feed(const Context& context, Call& call, std::unique_ptr<FeedSource> source,
                                     FeedOptions options);

}  // namespace divan::api
