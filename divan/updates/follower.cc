#include "divan/updates/follower.h"

#include "divan/base/check.h"
#include "divan/updates/feed.h"

namespace divan::updates {
namespace {

constexpr std::size_t kEventsPerRead = 1000;

}  // namespace

Follower::Follower(kv::Database& store, events::Bus& bus, const Clock& clock, std::string node)
    : store_(store), bus_(bus), clock_(clock), node_(std::move(node)), loop_(clock, "follower", [this] {
        return step();
      }) {}

void Follower::start() {
  begin();
  loop_.start();
}

void Follower::begin() {
  position_ = store_.run([&](kv::Transaction& tx) {
    ++transactions_;
    return last_event(tx);
  });
}

MonotonicTime Follower::step() {
  // A store that cancels watches may refuse the next one, too.
  if (watch_ && watch_->cancelled() && !loop_.notifier()->pause_until(clock_, clock_.now() + kRetryDelay))
    return MonotonicTime::max();
  bool watched = false;
  const bool polled = failures_.run([&] { watched = poll(); });
  return polled && watched ? MonotonicTime::max() : clock_.now() + kRetryDelay;
}

// Publishes the new events. Returns true if there is a watch for later ones; otherwise the log must be
// polled.
bool Follower::poll() {
  for (;;) {
    std::vector<NodeEvent> found;
    store_.run([&](kv::Transaction& tx) {
      ++transactions_;
      found = read_events(tx, position_, kEventsPerRead);
      watch_.reset();
      if (found.size() == kEventsPerRead) return;
      watch_ = watch_events(tx);
    });
    publish(found);
    if (found.size() == kEventsPerRead) continue;
    if (!watch_) return false;
    watch_->on_end([notifier = loop_.notifier()] { notifier->notify(); });
    return true;
  }
}

void Follower::publish(const std::vector<NodeEvent>& found) {
  bool in_feed = false;
  for (const auto& event : found) {
    DIVAN_CHECK(event.position >= position_, "the log of events is read backwards");
    position_ = event.position;
    // Events of this node were published at their commit. The rows of the feed may be written by any node.
    in_feed |= is_in_feed(event.kind);
    if (event.node != node_) events::publish_database_event(bus_, event.database, event.kind, event.id);
  }
  if (in_feed) bus_.publish(feed_channel(), [] { return events::Event{"feed", {}, {}, {}}; });
}

}  // namespace divan::updates
