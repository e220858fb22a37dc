#include "divan/api/feed.h"

#include <fmt/core.h>

#include <charconv>
#include <utility>

#include "divan/api/database_access.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/docs/sequence.h"
#include "divan/kv/check.h"

namespace divan::api {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDefaultHeartbeat{60'000};
// Longer heartbeats are shortened to this, since the longest would overflow the timer.
constexpr milliseconds kMaxHeartbeat{24 * 3'600'000};
constexpr milliseconds kMaxTimeout{60'000};
constexpr std::size_t kRowsPerRead = 500;
// Poll interval of a feed without a watch.
constexpr milliseconds kPollInterval{1000};
// Time after which a feed of a database checks again, before it reads, whether its user has access.
constexpr milliseconds kAuthorizedFor{10'000};
// Unsent bytes above which reading pauses.
constexpr std::size_t kMaxUnsent = 512 << 10;

std::optional<std::int64_t> parse_int(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Error invalid_integer(std::string_view name, std::string_view value) {
  return {400, "invalid_integer", fmt::format("`{}` is not a number of milliseconds: {}", name, value)};
}

// Sends heartbeats from the connection's own timer, so that an idle feed needs no thread.
class HeartbeatTimer : public std::enable_shared_from_this<HeartbeatTimer> {
 public:
  HeartbeatTimer(std::weak_ptr<http::Exchange> exchange, const Clock& clock, milliseconds interval,
                 std::string beat)
      : exchange_(std::move(exchange)),
        clock_(clock),
        interval_(interval),
        beat_(std::move(beat)),
        last_sent_(clock.now()) {}

  void start() { beat_after(interval_); }
  // Something else was sent: the next heartbeat is due an interval from now.
  void skip() { last_sent_ = clock_.now(); }

 private:
  void beat_after(milliseconds delay) {
    const auto exchange = exchange_.lock();
    if (!exchange) return;
    exchange->after(delay, [self = shared_from_this()] { self->beat(); });
  }
  // If the heartbeat after a row were merely skipped, the connection could be silent for two intervals, and
  // clients would give up.
  void beat() {
    const auto exchange = exchange_.lock();
    if (!exchange) return;
    const auto quiet = clock_.now() - last_sent_.load();
    if (quiet < interval_) return beat_after(std::chrono::ceil<milliseconds>(interval_ - quiet));
    exchange->write(beat_);
    skip();
    start();
  }

  const std::weak_ptr<http::Exchange> exchange_;
  const Clock& clock_;
  const milliseconds interval_;
  const std::string beat_;
  std::atomic<MonotonicTime> last_sent_;
};

class Feed {
 public:
  Feed(const Context& context, Call& call, FeedSource& source, const FeedOptions& options)
      : context_(context), call_(call), source_(source), options_(options), waiter_(context, call) {
    left_ = options_.limit.value_or(UINT64_MAX);
  }

  Async<void> run() {
    begin();
    // The response is complete, and the connection's next request waits for its end.
    if (is_live() && exchange().request().method() == "HEAD") {
      exchange().end();
      co_return;
    }
    for (;;) {
      check_connected(exchange());
      if (is_to_be_authorized()) {
        co_await call_.executor().allow_blocking();
        co_await authorize_again(context_, call_);
        authorized_ = context_.clock.now();
      }
      while (exchange().unsent() > kMaxUnsent) {
        exchange().on_drained(waiter_.callback());
        co_await waiter_.wait();
      }
      source_.arm(waiter_);
      std::vector<FeedRow> rows;
      bool more = false;
      if (left_ > 0) {
        const auto limit = std::min<std::uint64_t>(kRowsPerRead, left_);
        std::optional<bool> read;
        if (!call_.executor().may_block()) read = source_.read_memory(limit, rows);
        if (!read) {
          co_await call_.executor().allow_blocking();
          if (const auto database = source_.function_database()) {
            const auto read_there = [&] { read = source_.read(limit, rows); };
            co_await call_.executor().run_on(context_.function_threads, *database, FunctionUse::feed,
                                             read_there);
          } else {
            read = source_.read(limit, rows);
          }
        }
        more = *read;
      }
      const bool cut = left_ == 0 || rows.size() == left_;
      left_ -= rows.size();
      send(rows, rows.empty() || cut);
      const bool answered = as_object() && (options_.mode == FeedMode::normal || sent_rows_);
      if (cut || source_.ended() || (answered && !more) || waiter_.stopping()) break;
      if (more || !rows.empty()) continue;
      // The client has all rows so far; if it has closed its side, nothing shows whether it still reads.
      if (exchange().half_closed()) break;
      const auto left = time_left();
      if (left && *left <= milliseconds(0)) break;
      auto pause = source_.read_again_after();
      if (left) pause = std::min(pause.value_or(*left), *left);
      co_await waiter_.wait(pause);
    }
    if (!source_.knows_pending()) co_await call_.executor().allow_blocking();
    finish();
  }

 private:
  http::Exchange& exchange() const { return *call_.exchange(); }
  bool as_object() const { return options_.mode == FeedMode::normal || options_.mode == FeedMode::longpoll; }
  bool is_live() const { return options_.mode != FeedMode::normal; }

  // A feed may go on for days after its user has lost the access to the database, or its token has expired.
  bool is_to_be_authorized() const {
    const User& user = call_.user();
    const bool may_end = user.expires_s || (!user.admin && call_.database_access() != DatabaseAccess::none);
    return is_live() && may_end && context_.clock.now() - authorized_ >= kAuthorizedFor;
  }

  // A normal feed that fits in one response is not streamed; all others begin at once, so that the client
  // knows that it is listening.
  void begin() {
    last_sent_ = authorized_ = context_.clock.now();
    if (!is_live()) return;
    waiter_.wake_on_stop();
    // A client that has received the head of the response misses no rows from then on, even if rows are not
    // stored.
    source_.arm(waiter_);
    exchange().start(head(as_object() ? "{\"results\":[\n" : ""));
    if (options_.heartbeat) {
      const bool events = options_.mode == FeedMode::eventsource;
      heartbeat_timer_ =
          std::make_shared<HeartbeatTimer>(call_.exchange(), context_.clock, *options_.heartbeat,
                                           events ? "event: heartbeat\ndata: \n\n" : "\n");
      heartbeat_timer_->start();
    }
  }

  http::Response head(std::string body) const {
    http::Response response;
    const bool events = options_.mode == FeedMode::eventsource;
    response.headers = options_.headers;
    response.headers.push_back({"Content-Type", events ? "text/event-stream" : "application/json"});
    response.headers.push_back({"Cache-Control", events ? "no-cache" : "must-revalidate"});
    response.body = std::move(body);
    return response;
  }

  void send(const std::vector<FeedRow>& rows, bool last) {
    std::string text;
    for (const auto& row : rows) {
      switch (options_.mode) {
        case FeedMode::normal:
        case FeedMode::longpoll:
          if (sent_rows_) text += ",\n";
          text += row.json;
          break;
        case FeedMode::continuous: text += row.json + "\n"; break;
        case FeedMode::eventsource:
          text += "data: " + row.json + "\n";
          if (!row.seq.empty()) text += "id: " + row.seq + "\n";
          text += "\n";
          break;
      }
      sent_rows_ = true;
    }
    if (options_.mode == FeedMode::normal && !exchange().responded()) {
      text_ += text;
      if (!last && text_.size() > kMaxUnsent)
        exchange().start(head("{\"results\":[\n" + std::exchange(text_, {})));
      return;
    }
    if (text.empty()) return;
    exchange().write(std::move(text));
    if (heartbeat_timer_) heartbeat_timer_->skip();
    last_sent_ = context_.clock.now();
  }

  // Until the feed ends because there were no rows; nullopt: it does not.
  std::optional<milliseconds> time_left() const {
    if (options_.heartbeat) return std::nullopt;
    return std::chrono::ceil<milliseconds>(options_.timeout - (context_.clock.now() - last_sent_));
  }

  std::string end_members() {
    std::string out = "\"last_seq\":" + json::quoted(source_.last_seq());
    if (const auto pending = source_.pending()) out += fmt::format(",\"pending\":{}", *pending);
    return out;
  }

  void finish() {
    if (as_object()) {
      const std::string end = (sent_rows_ ? "\n],\n" : "],\n") + end_members() + "}\n";
      if (!exchange().responded()) {
        exchange().respond(head("{\"results\":[\n" + text_ + end));
        return;
      }
      exchange().write(text_ + end);
    } else if (options_.mode == FeedMode::continuous && !source_.last_seq().empty()) {
      exchange().write("{" + end_members() + "}\n");
    }
    exchange().end();
  }

  const Context& context_;
  Call& call_;
  FeedSource& source_;
  const FeedOptions& options_;
  RequestWaiter waiter_;
  std::uint64_t left_ = 0;
  bool sent_rows_ = false;
  std::string text_;  // of a normal feed, until it is known whether it fits in one response
  MonotonicTime last_sent_;
  MonotonicTime authorized_;
  std::shared_ptr<HeartbeatTimer> heartbeat_timer_;
};

}  // namespace

std::optional<milliseconds> WatchingSource::read_again_after() const {
  return watch_ == nullptr ? std::optional(kPollInterval) : std::nullopt;
}

FeedOptions parse_feed_options(const Call& call) {
  FeedOptions options;
  const std::string feed = call.param("feed").value_or("normal");
  if (feed == "normal") {
    options.mode = FeedMode::normal;
  } else if (feed == "longpoll") {
    options.mode = FeedMode::longpoll;
  } else if (feed == "continuous" || feed == "live") {
    options.mode = FeedMode::continuous;
  } else if (feed == "eventsource") {
    options.mode = FeedMode::eventsource;
  } else {
    throw bad_request("Supported `feed` types: normal, continuous, live, longpoll, eventsource");
  }
  options.limit = call.count("limit");
  if (const auto heartbeat = call.param("heartbeat"); heartbeat && *heartbeat != "false") {
    const auto ms = *heartbeat == "true" ? std::optional(kDefaultHeartbeat.count()) : parse_int(*heartbeat);
    if (!ms) throw invalid_integer("heartbeat", *heartbeat);
    if (*ms <= 0) throw bad_request("The heartbeat value should be a positive integer (in milliseconds).");
    options.heartbeat = std::min(milliseconds(*ms), kMaxHeartbeat);
  }
  if (const auto timeout = call.param("timeout")) {
    const auto ms = parse_int(*timeout);
    if (!ms || *ms < 0) throw invalid_integer("timeout", *timeout);
    options.timeout = std::min(milliseconds(*ms), kMaxTimeout);
  }
  return options;
}

std::optional<std::string> since_param(const Call& call) {
  if (const auto last = call.header("Last-Event-ID")) return std::string(*last);
  if (auto last = call.text("last-event-id")) return last;
  return call.text("since");
}

kv::Versionstamp parse_since(kv::Transaction& tx, std::string_view since) {
  const auto sequence = docs::parse_sequence(since);
  const kv::Version end = tx.read_version();
  if (!kv::is_beyond(sequence, end)) return sequence;
  throw bad_request(fmt::format(
      "The sequence `{}` of `since` is beyond the end of the store, {}: it is from another store, or from "
      "a state that a restore has undone. Begin again with `since=0`.",
      since, end));
}

Async<RouteResult> respond_with_feed(const Context& context, Call& call, std::unique_ptr<FeedSource> source,
                                     FeedOptions options) {
  Feed feed(context, call, *source, options);
  co_await feed.run();
  co_return std::nullopt;
}

}  // namespace divan::api
