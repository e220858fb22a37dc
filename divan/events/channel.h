// One channel: who listens, and how an event gets to them. Internal to the module: bus.h is what others use.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/striped.h"
#include "divan/events/mailbox.h"

namespace divan::events {

/// What a bus counts. Thread-safe.
struct Counters {
  StripedCounter published;
  StripedCounter delivered;
  StripedCounter lagged;
  alignas(kCacheLine) std::atomic<std::size_t> channels{0};
  std::atomic<std::size_t> subscribers{0};
};

/// What one channel has. A value type.
struct ChannelStats {
  std::string name;
  std::size_t subscribers;
};

/// The subscribers of one name. Thread-safe.
///
/// Everything but listened() happens under the channel's own lock, which is held for as long as it takes to
/// put a pointer into each mailbox: publishers of one channel take turns (so that all its subscribers see one
/// order), and those of different channels do not meet. Callbacks run after the lock is released.
class alignas(kCacheLine) Channel : public std::enable_shared_from_this<Channel> {
 public:
  Channel(std::string_view name, std::size_t hash, Counters& counters)
      : name_(name), hash_(hash), counters_(counters) {}

  const std::string& name() const { return name_; }

  /// Whether anybody listens: the one look that a publisher takes. True for a subscription that began before.
  bool listened() const noexcept { return listeners() != 0; }
  std::size_t listeners() const noexcept { return listeners_.load(std::memory_order_acquire); }

  /// Puts the event into every mailbox and makes the callbacks that this calls for. Answers how many
  /// mailboxes there were.
  std::size_t deliver(const EventPtr& event);

  void join(std::shared_ptr<Mailbox> mailbox);
  /// When it returns, nothing more is put into the mailbox.
  void leave(const Mailbox& mailbox);

 private:
  friend class Directory;  // keeps its own three fields here, so that a channel is a node of its table

  std::atomic<std::size_t> listeners_{0};  // mailboxes_.size(), for those who do not hold the lock
  const std::string name_;
  const std::size_t hash_;
  std::atomic<Channel*> next_{nullptr};
  std::size_t users_ = 0;  // guarded by the directory's lock

  Counters& counters_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Mailbox>> mailboxes_;
};

}  // namespace divan::events
