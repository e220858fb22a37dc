// A subscription's bounded queue, between publishers who never wait for it and one subscriber who may be
// slow. Internal to the module: bus.h is what others use.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "divan/base/clock.h"
#include "divan/events/event.h"

namespace divan::events {

/// The most events that wait for a subscriber who did not say otherwise.
inline constexpr std::size_t kDefaultMailboxEvents = 1024;
/// The most bytes of events that wait for a subscriber who did not say otherwise.
inline constexpr std::size_t kDefaultMailboxBytes = std::size_t{1} << 20;

/// How a subscriber wants its events.
struct SubscribeOptions {
  /// The most events that wait in the mailbox. With 0 the subscriber only learns how many events there were.
  std::size_t max_events = kDefaultMailboxEvents;
  /// The most bytes of waiting events: their strings and the Event itself, as if it were not shared.
  std::size_t max_bytes = kDefaultMailboxBytes;
  /// Called when the empty mailbox gets its first entry, so that the subscriber can arrange to come and take
  /// until nothing is left. It runs on the publisher's thread, under none of the bus's locks: it must be
  /// quick, and safe to call from several threads at a time and before subscribe() has returned. What it
  /// throws is logged and harms nobody. It may end its own subscription. A callback that ends another
  /// subscription waits for that one's callback, if it runs: two that end each other wait for ever.
  std::function<void()> notify = {};
};

/// A queue of events that drops its oldest when it is full and remembers how many. Thread-safe.
///
/// The oldest go, not the newest, since what a subscriber wants to know is how things are now. So what is
/// missing is always missing before the first event that waits, and one number is the whole marker.
class Mailbox {
 public:
  /// What became of an event that was put in.
  struct Put {
    std::uint64_t
        dropped;  ///< how many events gave way, perhaps the new one itself; none if none were wanted
    bool notify;  ///< the caller is to call notify() when it holds no lock
  };

  Mailbox(std::uint64_t id, SubscribeOptions options);

  std::uint64_t id() const { return id_; }

  /// Adds an event. Not after close().
  Put put(const EventPtr& event);

  /// Makes the call that put() has asked for, unless the mailbox is closed by now.
  void notify() noexcept;

  /// The first entry, if there is one.
  std::optional<Message> take();

  /// The same, but waits for one until the deadline.
  std::optional<Message> take_until(const Clock& clock, MonotonicTime deadline);

  /// Drops what waits. When it returns, the callback does not run and will not be called, except that the
  /// callback which closes its own mailbox still has to return. No more put() may follow.
  void close();

 private:
  bool is_empty() const { return waiting_.empty() && missed_ == 0; }
  std::optional<Message> take_locked();
  bool only_called_by(std::thread::id thread) const;

  const std::uint64_t id_;
  const std::size_t max_events_;
  const std::size_t max_bytes_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<EventPtr> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::uint64_t missed_ = 0;              // events that were dropped before waiting_.front()
  std::function<void()> callback_;        // not changed while a call of it runs
  std::vector<std::thread::id> callers_;  // one entry for each call that runs
  bool closed_ = false;
};

}  // namespace divan::events
