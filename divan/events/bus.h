// The event bus: channels by name, within one process. Publishers and subscribers do not know each other.
// Publishing to a channel without subscribers costs one lookup.
//
// Order: all subscribers of one channel see its events in one order, which keeps the order of each publisher.
// There is no order between channels. A subscriber receives the events that are published after subscribe()
// has returned, and possibly those that are published during the call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "divan/base/clock.h"
#include "divan/events/channel_name.h"
#include "divan/events/directory.h"
#include "divan/events/event.h"
#include "divan/events/mailbox.h"

namespace divan::events {

/// A handle of one subscription to one channel, with its own mailbox; destroying the handle ends the
/// subscription. Movable. The mailbox may be read from any thread; moving or ending the handle requires
/// external synchronisation.
///
/// A full mailbox drops its oldest events and puts a marker (Message::lagged) in their position. The stream
/// is complete except for the events that its markers count.
class Subscription {
 public:
  /// An empty handle: only assignment and end() may be called.
  Subscription() = default;
  Subscription(Subscription&& other) noexcept = default;
  /// Ends the current subscription, if any, and takes over the other one.
  Subscription& operator=(Subscription&& other) noexcept;
  ~Subscription() { end(); }

  /// Unique within the bus.
  std::uint64_t id() const { return mailbox_->id(); }
  const std::string& channel() const { return channel_->name(); }

  /// The next entry of the stream; nullopt if the mailbox is empty.
  std::optional<Message> try_next() { return mailbox_->take(); }

  /// The next entry of the stream; waits for one until `deadline`, then returns nullopt.
  std::optional<Message> next_until(const Clock& clock, MonotonicTime deadline) {
    return mailbox_->take_until(clock, deadline);
  }

  /// Ends the subscription, as the destructor does: no further events are put into its mailbox, and those in
  /// it are dropped. After the return its callback is not running and will not be called again; if the
  /// callback itself calls end(), it still has to return. Idempotent.
  void end();

 private:
  friend class Bus;
  Subscription(ChannelUse channel, std::shared_ptr<Mailbox> mailbox)
      : channel_(std::move(channel)), mailbox_(std::move(mailbox)) {}

  ChannelUse channel_;
  std::shared_ptr<Mailbox> mailbox_;
};

/// A publisher's handle of a channel, for hot paths: it avoids the lookup. Movable; publish() is thread-safe.
///
/// While a handle exists, its name keeps its channel: later subscribers are reached through the same handle,
/// and by name as well.
class Publisher {
 public:
  /// Publishes the Event that `make_event` returns. If there is no subscriber, `make_event` is not called and
  /// the cost is one load. Exceptions of `make_event` propagate to the caller; those of subscribers'
  /// callbacks do not. Returns the number of subscriptions, including those whose mailbox dropped the event.
  template <class MakeEvent>
  std::size_t publish(MakeEvent&& make_event) const {
    if (!has_subscribers()) return 0;
    return channel_->deliver(std::make_shared<const Event>(std::forward<MakeEvent>(make_event)()));
  }

  /// Returns true if the channel has subscribers (one load). For callers that prepare an event before they
  /// publish it.
  bool has_subscribers() const { return channel_->has_subscribers(); }

 private:
  friend class Bus;
  explicit Publisher(ChannelUse channel) : channel_(std::move(channel)) {}

  ChannelUse channel_;
};

/// Statistics of a bus. Events that had no subscriber are not counted.
struct BusStats {
  std::size_t channels;     ///< current channels that have subscribers
  std::size_t subscribers;  ///< current subscriptions
  std::uint64_t published;  ///< events that had a subscriber
  std::uint64_t delivered;  ///< times that an event was put into a mailbox
  std::uint64_t lagged;  ///< times that an event was dropped unread from a mailbox whose max_events is not 0
};

/// All channels of a process. Thread-safe. It must outlive its subscriptions and publishers.
class Bus {
 public:
  /// Subscribes to the channel of this name. A channel exists from its first subscriber to its last.
  [[nodiscard]] Subscription subscribe(std::string_view name, SubscribeOptions options = {});

  /// Returns a handle for publishing. Creating and destroying one costs more than publishing by name: keep
  /// it.
  [[nodiscard]] Publisher publisher(std::string_view name) { return Publisher(directory_.use(name)); }

  /// Publishes by name: like Publisher::publish, with a lock-free lookup.
  template <class MakeEvent>
  std::size_t publish(std::string_view name, MakeEvent&& make_event) {
    const auto channel = directory_.find_subscribed(name);
    if (channel == nullptr) return 0;
    return channel->deliver(std::make_shared<const Event>(std::forward<MakeEvent>(make_event)()));
  }

  BusStats stats() const;

  /// The channels that have subscribers now, unordered. For diagnostics: subscribing and unsubscribing block
  /// meanwhile.
  std::vector<ChannelStats> channels() { return directory_.subscribed(); }

 private:
  Counters counters_;
  Directory directory_{counters_};
  std::atomic<std::uint64_t> last_id_{0};
};

}  // namespace divan::events
