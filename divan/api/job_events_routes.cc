// GET /_jobs/_events: the events of all jobs. docs/jobs.md
#include <fmt/core.h>

#include "divan/api/feed.h"
#include "divan/api/routes.h"
#include "divan/base/json.h"
#include "divan/jobs/job_metrics.h"

namespace divan::api {
namespace {

// Number and bytes of the events queued for a slow client before it misses events.
constexpr std::size_t kMaxWaitingEvents = 10'000;
constexpr std::size_t kMaxWaitingBytes = 4 << 20;

class JobEvents final : public FeedSource {
 public:
  JobEvents(const Context& context, User user)
      : context_(context), bus_(context.catalog.bus()), user_(std::move(user)) {}

  void arm(const RequestWaiter& waiter) override {
    if (subscription_) return;
    subscription_.emplace(bus_.subscribe(
        jobs::jobs_channel(),
        {.max_events = kMaxWaitingEvents, .max_bytes = kMaxWaitingBytes, .notify = waiter.callback()}));
  }

  std::optional<bool> read_memory(std::size_t limit, std::vector<FeedRow>& rows) override {
    while (rows.size() < limit) {
      const auto message = subscription_->try_next();
      if (!message) return false;
      if (message->event && !may_see(message->event->payload)) continue;
      rows.push_back(
          {message->event ? message->event->payload : fmt::format(R"({{"lagged":{}}})", message->lagged),
           {}});
    }
    return true;
  }

  // Events are not stored, so a feed cannot be resumed.
  std::string last_seq() const override { return {}; }

 private:
  bool may_see(std::string_view event) const {
    const auto type = json::string_value(json::member(event, "type").value_or(""));
    return !type || may_use_type(context_, user_, *type);
  }

  const Context& context_;
  events::Bus& bus_;
  const User user_;
  std::optional<events::Subscription> subscription_;
};

}  // namespace

Async<RouteResult> job_events(const Context& context, Call& call) {
  call.allow("GET");
  const auto mode = call.param("feed").value_or("continuous");
  if (mode != "continuous" && mode != "eventsource")
    throw bad_request("Supported `feed` types: continuous, eventsource");
  auto feed = parse_feed_options(call);
  if (mode != "eventsource") feed.mode = FeedMode::continuous;
  return respond_with_feed(context, call, std::make_unique<JobEvents>(context, call.user()), std::move(feed));
}

}  // namespace divan::api
