// Channels of the bus over HTTP: publishing, listening, and an overview. docs/feeds.md
#include <fmt/core.h>

#include <algorithm>

#include "divan/api/feed.h"
#include "divan/api/routes.h"
#include "divan/base/json.h"

namespace divan::api {
namespace {

// Maximum size of an event in bytes of JSON.
constexpr std::size_t kMaxEventBytes = 1 << 20;
// Maximum size of a channel's name, in the bus's form.
constexpr std::size_t kMaxChannelBytes = 512;
// Number and bytes of the events queued for a slow client before it misses events. The bytes are enough for
// several of the largest events.
constexpr std::size_t kMaxWaitingEvents = 10'000;
constexpr std::size_t kMaxWaitingBytes = 4 * kMaxEventBytes;
// Bytes after which one read ends.
constexpr std::size_t kReadBytes = 256 << 10;
// Users with this role may use all channels except the server's own.
constexpr std::string_view kRole = "events";

// The kind of events that clients publish.
constexpr std::string_view kPublished = "published";

// The channel as part of a path after /_events/.
std::string path_of(std::string_view channel) {
  std::string path;
  for (const auto& part : events::channel_parts(channel)) {
    if (!path.empty()) path += '/';
    path += http::percent_encode(part);
  }
  return path;
}

// Throws bad_request unless /_events/{part}/... is a valid channel name.
std::string channel_of(const Call& call) {
  const auto parts = std::span(call.path()).subspan(1);
  for (const auto& part : parts) {
    if (part.empty()) throw bad_request("A part of the channel's name is empty.");
  }
  auto name = events::channel_name(parts);
  if (name.size() > kMaxChannelBytes)
    throw bad_request(
        fmt::format("The channel's name is too long; at most {} bytes are allowed.", kMaxChannelBytes));
  return name;
}

// The events of one channel.
class ChannelSource final : public FeedSource {
 public:
  ChannelSource(events::Bus& bus, std::string channel)
      : bus_(bus), channel_(std::move(channel)), shown_(json::quoted(path_of(channel_))) {}

  void arm(const RequestWaiter& waiter) override {
    if (subscription_) return;
    subscription_.emplace(bus_.subscribe(
        channel_,
        {.max_events = kMaxWaitingEvents, .max_bytes = kMaxWaitingBytes, .notify = waiter.callback()}));
  }

  std::optional<bool> read_memory(std::size_t limit, std::vector<FeedRow>& rows) override {
    std::size_t bytes = 0;
    while (rows.size() < limit && bytes < kReadBytes) {
      const auto message = subscription_->try_next();
      if (!message) return false;
      rows.push_back({row_of(*message), {}});
      bytes += rows.back().json.size();
    }
    return true;
  }

  // Events are not stored, so a feed cannot be resumed.
  std::string last_seq() const override { return {}; }

 private:
  std::string row_of(const events::Message& message) const {
    if (message.event == nullptr) return fmt::format(R"({{"lagged":{}}})", message.lagged);
    const events::Event& event = *message.event;
    if (!events::is_own_channel(channel_))
      return fmt::format(R"({{"channel":{},"data":{}}})", shown_, event.payload);
    std::string out;
    json::Writer writer(out);
    writer.begin_object().key("db_name").string(event.database).key("type").string(event.kind);
    if (!event.id.empty()) writer.key("id").string(event.id);
    writer.end_object();
    return out;
  }

  events::Bus& bus_;
  const std::string channel_;
  const std::string shown_;
  std::optional<events::Subscription> subscription_;
};

RouteResult publish(const Context& context, Call& call, const std::string& channel) {
  if (events::is_own_channel(channel))
    throw forbidden("Channels whose names begin with an underscore are reserved for the server.");
  if (call.body().size() > kMaxEventBytes)
    throw Error(413, "event_too_large",
                fmt::format("The event is too large; at most {} bytes are allowed.", kMaxEventBytes));
  auto body = call.json_body();
  const auto reached = context.catalog.bus().publish(channel, [&] {
    return events::Event{std::string(kPublished), {}, {}, std::move(body)};
  });
  return json_response(200, fmt::format(R"({{"ok":true,"reached":{}}})", reached));
}

Async<RouteResult> listen(const Context& context, Call& call, std::string channel) {
  if (events::is_own_channel(channel)) {
    if (!call.user().admin)
      throw forbidden("Channels whose names begin with an underscore are for server admins.");
    const auto& path = call.path();
    const bool known = path[1] == "_dbs" ? path.size() == 2 : path[1] == "_db" && path.size() == 3;
    if (!known) throw not_found("Unknown channel of the server; expected `_dbs` or `_db/{name}`.");
  }
  const auto mode = call.param("feed").value_or("continuous");
  if (mode != "continuous" && mode != "live" && mode != "eventsource")
    throw bad_request("Supported `feed` types: continuous, live, eventsource");
  auto feed = parse_feed_options(call);
  if (mode != "eventsource") feed.mode = FeedMode::continuous;
  return respond_with_feed(context, call,
                           std::make_unique<ChannelSource>(context.catalog.bus(), std::move(channel)),
                           std::move(feed));
}

// GET /_events
RouteResult overview(const Context& context, const Call& call) {
  auto channels = context.catalog.bus().channels();
  if (!call.user().admin)
    std::erase_if(channels, [](const auto& channel) { return events::is_own_channel(channel.name); });
  std::sort(channels.begin(), channels.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::size_t subscribers = 0;
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("channels").begin_array();
  for (const auto& channel : channels) {
    subscribers += channel.subscribers;
    writer.begin_object().key("name").string(path_of(channel.name)).key("subscribers");
    writer.number(static_cast<std::int64_t>(channel.subscribers)).end_object();
  }
  const auto stats = context.catalog.bus().stats();
  writer.end_array().key("subscribers").number(static_cast<std::int64_t>(subscribers));
  writer.key("published").number(static_cast<std::int64_t>(stats.published));
  writer.key("delivered").number(static_cast<std::int64_t>(stats.delivered));
  writer.key("lagged").number(static_cast<std::int64_t>(stats.lagged)).end_object();
  return json_response(200, out);
}

}  // namespace

Async<RouteResult> events_of_channels(const Context& context, const CallPtr& call) {
  call->require_role(kRole, "Events");
  const bool is_overview = call->path().size() == 1;
  call->allow(is_overview ? "GET" : "GET,POST");
  if (!is_overview && call->method() == "GET") co_return co_await listen(context, *call, channel_of(*call));
  co_await call->executor().allow_blocking();
  co_return is_overview ? overview(context, *call) : publish(context, *call, channel_of(*call));
}

}  // namespace divan::api
