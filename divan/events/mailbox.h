// A subscription's bounded queue between publishers, which never wait for it, and one subscriber, which may
// be slow. Internal to the module; others include bus.h.
#pragma once

#include <boost/container/deque.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "divan/base/clock.h"
#include "divan/events/event.h"

namespace divan::events {

/// The default of SubscribeOptions::max_events.
inline constexpr std::size_t kDefaultMailboxEvents = 1024;
/// The default of SubscribeOptions::max_bytes.
inline constexpr std::size_t kDefaultMailboxBytes = std::size_t{1} << 20;

/// The options of a subscription.
struct SubscribeOptions {
  /// The most events in the mailbox. With 0 the subscriber only learns the number of events.
  std::size_t max_events = kDefaultMailboxEvents;
  /// The most bytes of events in the mailbox: their strings and the Event itself, as if it were not shared.
  std::size_t max_bytes = kDefaultMailboxBytes;
  /// Called when the empty mailbox gets its first entry, so that the subscriber can arrange to read until the
  /// mailbox is empty. Runs on the publisher's thread without a lock of the bus. It must be fast and
  /// thread-safe, and may be called before subscribe() has returned. Its exceptions are logged. It may end
  /// its own subscription. A callback that ends another subscription waits for that one's running callback:
  /// two that end each other deadlock.
  std::function<void()> notify = {};
};

/// A queue of events that drops and counts its oldest ones when it is full. Thread-safe. It has a condition
/// variable of its own, since close() and take_until() may wait at the same time.
///
/// The oldest events are dropped, not the newest, since a subscriber needs the current state. So dropped
/// events always precede the first queued event, and one number suffices as marker.
class Mailbox {
 public:
  /// The result of put().
  struct Put {
    /// The number of events dropped, possibly including the new one; 0 if max_events is 0.
    std::uint64_t dropped;
    /// The caller must call notify() when it holds no lock.
    bool notify;
  };

  Mailbox(std::uint64_t id, SubscribeOptions options);

  std::uint64_t id() const { return id_; }

  /// Adds an event. Must not be called after close().
  Put put(const EventPtr& event);

  /// Calls the callback, unless the mailbox is closed by now.
  void notify() noexcept;

  /// Removes the first entry; nullopt if the mailbox is empty.
  std::optional<Message> take();

  /// Like take(), but waits for an entry until the deadline.
  std::optional<Message> take_until(const Clock& clock, MonotonicTime deadline);

  /// Drops all entries. After the return the callback is not running and will not be called; if it closes its
  /// own mailbox, it still has to return. put() must not be called afterwards.
  void close();

 private:
  bool is_empty() const { return waiting_.empty() && missed_ == 0; }
  std::optional<Message> take_locked();
  bool only_called_by(std::thread::id thread) const;

  const std::uint64_t id_;
  const std::size_t max_events_;
  const std::size_t max_bytes_;

  Mutex mutex_{MutexRank::mailbox, "Mailbox::mutex_"};  // protects the members below
  ConditionVariable changed_;
  boost::container::deque<EventPtr> waiting_;  // allocates nothing before the first event
  std::size_t waiting_bytes_ = 0;
  std::uint64_t missed_ = 0;              // events dropped before waiting_.front()
  std::function<void()> callback_;        // not changed while a call runs
  std::vector<std::thread::id> callers_;  // one entry per running call
  bool closed_ = false;
};

}  // namespace divan::events
