// The event bus: channels by name, within one process. Code that does something others may want to know
// publishes it; code that wants to know subscribes. Neither knows the other, and an event point that nobody
// listens to costs a look.
//
// Order: all subscribers of one channel see its events in one order, which keeps the order of each publisher.
// Nothing is promised between channels. A subscriber gets what is published after subscribe() has returned,
// and perhaps what is published during it.
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

/// One subscriber's interest in one channel, with its own mailbox; it ends with this handle. Movable. The
/// mailbox may be read from any thread; moving or ending the handle needs external synchronisation.
///
/// A mailbox that is full drops its oldest events, and a marker (Message::lagged) stands in their place: the
/// stream is complete but for what its markers count.
class Subscription {
 public:
  /// A handle of nothing, to be assigned to. Only assignment and end() are for it.
  Subscription() = default;
  Subscription(Subscription&& other) noexcept = default;
  /// Ends the subscription that this handle was.
  Subscription& operator=(Subscription&& other) noexcept;
  ~Subscription() { end(); }

  /// Unlike any other subscription's of this bus.
  std::uint64_t id() const { return mailbox_->id(); }
  const std::string& channel() const { return channel_->name(); }

  /// The next entry of the stream, if one is there.
  std::optional<Message> try_next() { return mailbox_->take(); }

  /// The next entry of the stream; waits for it until `deadline`, then nothing.
  std::optional<Message> next_until(const Clock& clock, MonotonicTime deadline) {
    return mailbox_->take_until(clock, deadline);
  }

  /// Ends the subscription, as the destructor does: nothing more is put into its mailbox, what waits there is
  /// dropped, and when this returns its callback is not running and will not be called again; unless it is
  /// that callback which ends it, and which then still has to return. Idempotent.
  void end();

 private:
  friend class Bus;
  Subscription(ChannelUse channel, std::shared_ptr<Mailbox> mailbox)
      : channel_(std::move(channel)), mailbox_(std::move(mailbox)) {}

  ChannelUse channel_;
  std::shared_ptr<Mailbox> mailbox_;
};

/// A publisher's hold on a channel, for hot paths: it pays no look-up. Movable; publish() is thread-safe.
///
/// While a handle exists, its name keeps its channel: subscribers who come later, leave and come back are
/// reached through the same handle, and by name all the same.
class Publisher {
 public:
  /// Publishes the Event that `make_event` returns, which is not called if nobody listens: then this is one
  /// load. What `make_event` throws goes to the caller; subscribers' failures never do. Answers how many
  /// subscriptions it reached: those that are told that they missed it count, too.
  template <class MakeEvent>
  std::size_t publish(MakeEvent&& make_event) const {
    if (!is_listened_to()) return 0;
    return channel_->deliver(std::make_shared<const Event>(std::forward<MakeEvent>(make_event)()));
  }

  /// For those who prepare an event before it is time to publish it: one load.
  bool is_listened_to() const { return channel_->listened(); }

 private:
  friend class Bus;
  explicit Publisher(ChannelUse channel) : channel_(std::move(channel)) {}

  ChannelUse channel_;
};

/// What a bus has done and holds. What was published to nobody is not counted anywhere.
struct BusStats {
  std::size_t channels;     ///< channels that somebody listens to now
  std::size_t subscribers;  ///< subscriptions now
  std::uint64_t published;  ///< events that were published to somebody
  std::uint64_t delivered;  ///< times that an event was put into a mailbox
  std::uint64_t lagged;     ///< times that an event was dropped from a mailbox (with room for any) unread
};

/// All channels of a process. Thread-safe. It must outlive its subscriptions and publishers.
class Bus {
 public:
  /// Subscribes to the channel of this name, which exists from the first subscriber to the last.
  [[nodiscard]] Subscription subscribe(std::string_view name, SubscribeOptions options = {});

  /// A handle to publish with. Making and dropping one costs more than publishing by name: keep it.
  [[nodiscard]] Publisher publisher(std::string_view name) { return Publisher(directory_.use(name)); }

  /// Publishes by name: as Publisher::publish, with a look-up that takes no lock.
  template <class MakeEvent>
  std::size_t publish(std::string_view name, MakeEvent&& make_event) {
    const auto channel = directory_.find_listened(name);
    if (channel == nullptr) return 0;
    return channel->deliver(std::make_shared<const Event>(std::forward<MakeEvent>(make_event)()));
  }

  BusStats stats() const;

  /// The channels that somebody listens to now, in no order. For people who look: it keeps subscribers from
  /// coming and going while it lists.
  std::vector<ChannelStats> channels() { return directory_.listened(); }

 private:
  Counters counters_;
  Directory directory_{counters_};
  std::atomic<std::uint64_t> last_id_{0};
};

}  // namespace divan::events
