// Feeds: what came after some place, and then what comes. `_changes`, `_db_updates`, a job's state and the
// membership of a role all work like this; they differ in where the rows come from (FeedSource).
//
//   normal       what there is, as a JSON object
//   longpoll     the same, but with nothing there yet it waits for the first rows
//   continuous   rows as lines of JSON, without end
//   eventsource  rows as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html)
//
// A feed with nothing to say holds a connection, a subscription and a timer, but no thread.
#pragma once

#include "divan/api/task.h"

namespace divan::api {

struct FeedRow {
  std::string json;
  std::string seq;  // empty: the feed has no places, and cannot be gone on with
};

/// Where the rows of a feed come from. One thread at a time.
class FeedSource {
 public:
  virtual ~FeedSource() = default;

  /// Called before every read(): from now on `feed` is to be woken when there may be rows that the read will
  /// not have seen. It may be woken too often, and after the source's end.
  virtual void arm(Task& feed) = 0;

  /// Appends up to `limit` further rows and remembers the place; answers whether there may be more at once.
  virtual bool read(std::size_t limit, std::vector<FeedRow>& rows) = 0;

  /// The place up to which has been read; empty if the feed has no places.
  virtual std::string last_seq() const = 0;

  /// How many rows come after that place, if that is known.
  virtual std::optional<std::int64_t> pending() { return std::nullopt; }

  /// Whether the feed has come to its end: nothing will follow.
  virtual bool ended() const { return false; }

  /// After what time to read again at the latest, if nothing may wake the feed before.
  virtual std::optional<std::chrono::milliseconds> read_again_after() const { return std::nullopt; }
};

/// A source that waits by a watch on the store, and where that has too many of them, by the clock.
class WatchingSource : public FeedSource {
 public:
  void arm(Task& feed) override { wake_ = feed.waker(); }
  std::optional<std::chrono::milliseconds> read_again_after() const override;

 protected:
  /// For the transaction that reads: `make_watch()` returns a watch on what it reads, or null to be polled.
  template <class Fn>
  void watch(Fn&& make_watch) {
    watch_ = nullptr;  // first: the store may have just one left
    watch_ = make_watch();
  }
  /// After the transaction.
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
  std::chrono::milliseconds timeout{60'000};  // of waiting for rows; not with a heartbeat
  http::Headers headers{};                    // more of the answer's fields
};

/// Reads feed, limit, heartbeat (true, false or milliseconds) and timeout. Throws bad_request.
FeedOptions parse_feed_options(const Call& call);

/// `since`, or where an event source was cut off.
std::optional<std::string> since_param(const Call& call);

/// The place that `since` names ("now" excepted). Throws bad_request (400) if it is malformed, or beyond
/// everything that the transaction's version of the store can have: a place of another store, or of a later
/// state than the one that was restored, after which nothing would ever come.
kv::Versionstamp parse_since(kv::Transaction& tx, std::string_view since);

/// Answers a request with a feed.
void start_feed(const Context& context, CallPtr call, std::unique_ptr<FeedSource> source,
                const FeedOptions& options);

}  // namespace divan::api
