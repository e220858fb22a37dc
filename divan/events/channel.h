// One channel: its subscribers, and the delivery of events to them. Internal to the module; others include
// bus.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/mutex.h"
#include "divan/base/striped.h"
#include "divan/events/mailbox.h"

namespace divan::events {

/// The counters of a bus. Thread-safe.
struct Counters {
  StripedCounter published;
  StripedCounter delivered;
  StripedCounter lagged;
  alignas(kCacheLine) std::atomic<std::size_t> channels{0};
  std::atomic<std::size_t> subscribers{0};
};

/// Statistics of one channel. A value type.
struct ChannelStats {
  std::string name;
  std::size_t subscribers;
};

/// The subscribers of one name. Thread-safe.
///
/// All functions except has_subscribers() take the channel's own lock, which is held while a pointer is put
/// into each mailbox. So publishers of one channel are serialized (all its subscribers see one order), and
/// those of different channels do not contend. Callbacks run after the lock is released.
class alignas(kCacheLine) Channel : public std::enable_shared_from_this<Channel> {
 public:
  Channel(std::string_view name, std::size_t hash, Counters& counters)
      : name_(name), hash_(hash), counters_(counters) {}

  const std::string& name() const { return name_; }

  /// Returns true if there are subscribers: a publisher's only check. True if a subscription began before the
  /// call.
  bool has_subscribers() const noexcept { return subscribers() != 0; }
  std::size_t subscribers() const noexcept { return subscriber_count_.load(std::memory_order_acquire); }

  /// Puts the event into every mailbox and makes the resulting callbacks. Returns the number of mailboxes.
  std::size_t deliver(const EventPtr& event);

  void join(std::shared_ptr<Mailbox> mailbox);
  /// Removes the mailbox. After the return no event is put into it.
  void leave(const Mailbox& mailbox);

 private:
  friend class Directory;  // keeps its own three fields here, so that a channel is a node of its table

  std::atomic<std::size_t> subscriber_count_{0};  // mailboxes_.size(), readable without the lock
  const std::string name_;
  const std::size_t hash_;
  std::atomic<Channel*> next_{nullptr};
  std::size_t users_ = 0;  // guarded by the directory's lock

  Counters& counters_;
  Mutex mutex_{MutexRank::channel, "Channel::mutex_"};  // protects mailboxes_
  std::vector<std::shared_ptr<Mailbox>> mailboxes_;
};

}  // namespace divan::events
