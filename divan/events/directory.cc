#include "divan/events/directory.h"

#include <absl/hash/hash.h>

#include "divan/base/check.h"

// Lookup of channels by publishers
//
// Code may publish in many places, so publishing must cost next to nothing while there are no subscribers. A
// publisher by name must find out that a channel has no subscribers without a lock, and without writing
// memory that other publishers write, although channels come and go all the time (a long poll creates one and
// removes it). A map that is copied and swapped at each change would copy a thousand names per long poll if
// there are a thousand channels. So the map is a hash table with a fixed number of chains, whose nodes are
// the channels themselves. Adding a channel is one store to a chain's head, removing one is one store to its
// predecessor's link; no other entry is moved or copied.
//
//   find_subscribed An empty chain (nearly all are, when few channels exist) is one load: no subscribers. In
//                   others, walk the chain inside a section of the ReaderGate, which is two additions to a
//                   counter on the thread's own cache line, and take a reference to the channel while inside.
//   use             Under the lock: find the channel, or put a new one at the head, complete before it can
//                   be seen. The lock makes one channel of two first subscribers, and orders a subscription
//                   against the removal: it finds the channel before and keeps it, or makes a new one after.
//   release         Under the lock: when the last user goes, unlink the channel. Its own link stays as it
//                   is, so that a reader at the channel still finds the rest of the chain. Then, without
//                   the lock, wait for the readers. The caller holds the last use's reference until then,
//                   so for as long as a reader can see the channel there is one to copy.
//
// A reader at an unlinked channel X may proceed to Y by X's old link although Y was unlinked as well. That is
// safe: the reader entered before X was unlinked, and X was unlinked before Y (otherwise X's link would have
// been changed), so the thread that removes Y waits for the reader, too.
//
// A publisher that finds a channel just before the last subscriber leaves delivers to an empty channel: as if
// it had published a moment later. If a new channel of that name is created meanwhile, its subscribers miss
// the event, which is correct, since it was published before they had subscribed.
//
// A publisher's handle counts as a user: while it is held, the name keeps its channel, with or without
// subscribers, and so the handle reaches later subscribers.

namespace divan::events {

namespace {

std::size_t hash_of(std::string_view name) { return absl::Hash<std::string_view>{}(name); }

}  // namespace

ChannelUse& ChannelUse::operator=(ChannelUse&& other) noexcept {
  std::swap(directory_, other.directory_);
  std::swap(channel_, other.channel_);
  return *this;
}

void ChannelUse::end() {
  if (channel_ != nullptr) directory_->release(*channel_);
}

Directory::~Directory() {
  for (const auto& head : chains_) DIVAN_CHECK(head.load() == nullptr, "a channel outlives its directory");
}

ChannelUse Directory::use(std::string_view name) {
  const auto hash = hash_of(name);
  auto& head = chain(hash);
  std::lock_guard lock(mutex_);
  for (Channel* channel = head; channel != nullptr; channel = channel->next_) {
    if (channel->hash_ == hash && channel->name() == name) {
      DIVAN_CHECK(channel->users_ > 0, "channel `{}` is in the directory without users", name);
      ++channel->users_;
      return {*this, channel->shared_from_this()};
    }
  }
  auto channel = std::make_shared<Channel>(name, hash, counters_);
  channel->users_ = 1;
  channel->next_ = head.load();
  head = channel.get();
  return {*this, std::move(channel)};
}

std::shared_ptr<Channel> Directory::find_subscribed(std::string_view name) {
  const auto hash = hash_of(name);
  const auto& head = chain(hash);
  if (head.load(std::memory_order_acquire) == nullptr) return nullptr;
  const auto section = gate_.enter();
  for (Channel* channel = head; channel != nullptr; channel = channel->next_) {
    if (channel->hash_ == hash && channel->name() == name) {
      return channel->has_subscribers() ? channel->shared_from_this() : nullptr;
    }
  }
  return nullptr;
}

std::vector<ChannelStats> Directory::subscribed() {
  std::vector<ChannelStats> found;
  std::lock_guard lock(mutex_);
  for (const auto& head : chains_) {
    for (Channel* channel = head; channel != nullptr; channel = channel->next_) {
      if (const auto count = channel->subscribers(); count > 0) found.push_back({channel->name(), count});
    }
  }
  return found;
}

void Directory::release(Channel& channel) {
  {
    std::lock_guard lock(mutex_);
    DIVAN_CHECK(channel.users_ > 0, "channel `{}` is released twice", channel.name());
    if (--channel.users_ > 0) return;
    unlink(channel);
  }
  gate_.wait_for_readers();
}

void Directory::unlink(Channel& channel) {
  auto* link = &chain(channel.hash_);
  while (*link != &channel) {
    DIVAN_CHECK(*link != nullptr, "channel `{}` is not in its chain", channel.name());
    link = &link->load()->next_;
  }
  *link = channel.next_.load();
}

}  // namespace divan::events
