// GET /_jobs/_events: what happens to all jobs. docs/jobs.md
#include "divan/api/feed.h"
#include "divan/api/routes.h"
#include "divan/jobs/observer.h"

namespace divan::api {
namespace {

// What waits for a client that is slow, before it begins to miss events.
constexpr std::size_t kMaxWaitingEvents = 10'000;
constexpr std::size_t kMaxWaitingBytes = 4 << 20;

class JobEvents final : public FeedSource {
 public:
  explicit JobEvents(events::Bus& bus) : bus_(bus) {}

  void arm(Task& feed) override {
    if (subscription_) return;
    subscription_.emplace(bus_.subscribe(
        jobs::jobs_channel(),
        {.max_events = kMaxWaitingEvents, .max_bytes = kMaxWaitingBytes, .notify = feed.waker()}));
  }

  bool read(std::size_t limit, std::vector<FeedRow>& rows) override {
    while (rows.size() < limit) {
      const auto message = subscription_->try_next();
      if (!message) return false;
      rows.push_back(
          {message->event ? message->event->payload : fmt::format(R"({{"lagged":{}}})", message->lagged),
           {}});
    }
    return true;
  }

  // Events have no place that one could go back to.
  std::string last_seq() const override { return {}; }

 private:
  events::Bus& bus_;
  std::optional<events::Subscription> subscription_;
};

}  // namespace

Answer job_events(const Context& context, const CallPtr& call) {
  call->allow("GET");
  const auto mode = call->param("feed").value_or("continuous");
  if (mode != "continuous" && mode != "eventsource")
    throw bad_request("Supported `feed` types: continuous, eventsource");
  auto feed = parse_feed_options(*call);
  if (mode != "eventsource") feed.mode = FeedMode::continuous;
  start_feed(context, call, std::make_unique<JobEvents>(context.catalog.bus()), feed);
  return std::nullopt;
}

}  // namespace divan::api
