#include "divan/events/channel.h"

#include <algorithm>
#include <utility>

#include "divan/base/check.h"

namespace divan::events {

std::size_t Channel::deliver(const EventPtr& event) {
  std::vector<std::shared_ptr<Mailbox>> to_notify;
  std::size_t delivered = 0;
  std::uint64_t dropped = 0;
  {
    std::lock_guard lock(mutex_);
    for (const auto& mailbox : mailboxes_) {
      const auto put = mailbox->put(event);
      dropped += put.dropped;
      if (put.notify) to_notify.push_back(mailbox);
    }
    delivered = mailboxes_.size();
  }
  if (delivered == 0) return 0;  // all have unsubscribed since the publisher checked
  counters_.published.add(1);
  counters_.delivered.add(delivered);
  if (dropped > 0) counters_.lagged.add(dropped);
  // A callback may end subscriptions and destroy publishers, and thereby this channel: do not access its
  // members from here on.
  for (const auto& mailbox : to_notify) mailbox->notify();
  return delivered;
}

void Channel::join(std::shared_ptr<Mailbox> mailbox) {
  std::lock_guard lock(mutex_);
  mailboxes_.push_back(std::move(mailbox));
  subscriber_count_.store(mailboxes_.size(), std::memory_order_release);
  ++counters_.subscribers;
  if (mailboxes_.size() == 1) ++counters_.channels;
}

void Channel::leave(const Mailbox& mailbox) {
  std::lock_guard lock(mutex_);
  const auto it = std::find_if(mailboxes_.begin(), mailboxes_.end(),
                               [&mailbox](const auto& candidate) { return candidate.get() == &mailbox; });
  DIVAN_CHECK(it != mailboxes_.end(), "a mailbox is not in channel `{}`", name());
  DIVAN_CHECK(counters_.subscribers > 0, "the number of subscriptions would be negative");
  std::swap(*it, mailboxes_.back());
  mailboxes_.pop_back();
  subscriber_count_.store(mailboxes_.size(), std::memory_order_release);
  --counters_.subscribers;
  if (!mailboxes_.empty()) return;
  DIVAN_CHECK(counters_.channels > 0, "the number of channels would be negative");
  --counters_.channels;
}

}  // namespace divan::events
