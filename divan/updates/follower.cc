#include "divan/updates/follower.h"

#include "divan/updates/feed.h"

namespace divan::updates {
namespace {

constexpr std::size_t kEventsPerRead = 1000;

}  // namespace

Follower::Follower(kv::Database& store, events::Bus& bus, const Clock& clock, std::string node)
    : store_(store), bus_(bus), clock_(clock), node_(std::move(node)) {}

Follower::~Follower() {
  {
    std::lock_guard lock(signal_->mutex);
    signal_->stopping = true;
  }
  signal_->changed.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Follower::start() {
  place_ = store_.run([&](kv::Transaction& tx) {
    ++transactions_;
    return last_event(tx);
  });
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "follower");
}

void Follower::run() {
  std::unique_lock lock(signal_->mutex);
  while (!signal_->stopping) {
    signal_->fired = false;
    lock.unlock();
    bool watched = false;
    const bool looked = failures_.run([&] { watched = look(); });
    lock.lock();
    const auto next = looked && watched ? MonotonicTime::max() : clock_.now() + kRetryDelay;
    clock_.wait_until(lock, signal_->changed, next, [this] { return signal_->stopping || signal_->fired; });
    // A store that cancels watches is not asked for the next one at once.
    if (watch_ && watch_->cancelled()) {
      clock_.wait_until(lock, signal_->changed, clock_.now() + kRetryDelay,
                        [this] { return signal_->stopping; });
    }
  }
}

// Publishes all that is new; answers whether a watch will tell of more.
bool Follower::look() {
  for (;;) {
    std::vector<NodeEvent> found;
    store_.run([&](kv::Transaction& tx) {
      ++transactions_;
      found = read_events(tx, place_, kEventsPerRead);
      watch_.reset();
      if (found.size() == kEventsPerRead) return;
      try {
        watch_ = watch_events(tx);
      } catch (const kv::Error& error) {
        // Then the log is looked at now and then.
        if (error.code() != kv::ErrorCode::too_many_watches) throw;
      }
    });
    publish(found);
    if (found.size() == kEventsPerRead) continue;
    if (!watch_) return false;
    watch_->on_end([signal = signal_] {
      {
        std::lock_guard lock(signal->mutex);
        signal->fired = true;
      }
      signal->changed.notify_all();
    });
    return true;
  }
}

void Follower::publish(const std::vector<NodeEvent>& found) {
  bool in_feed = false;
  for (const auto& event : found) {
    place_ = event.place;
    // Of our own ones the bus had each at its commit; the row of the feed may be another node's work.
    in_feed |= is_in_feed(event.kind);
    if (event.node != node_) events::publish_database_event(bus_, event.database, event.kind, event.id);
  }
  if (in_feed) bus_.publish(feed_channel(), [] { return events::Event{"feed", {}, {}, {}}; });
}

}  // namespace divan::updates
