#include "divan/events/bus.h"

#include "divan/base/check.h"

namespace divan::events {

Subscription& Subscription::operator=(Subscription&& other) noexcept {
  if (this != &other) {
    end();
    channel_ = std::move(other.channel_);
    mailbox_ = std::move(other.mailbox_);
  }
  return *this;
}

void Subscription::end() {
  if (mailbox_ == nullptr) return;
  DIVAN_CHECK(channel_, "a subscription has a mailbox and no channel");
  // The members are taken out first: the callback may be the one that destroys this handle.
  const auto channel = std::move(channel_);
  const auto mailbox = std::move(mailbox_);
  channel->leave(*mailbox);
  mailbox->close();
}

Subscription Bus::subscribe(std::string_view name, SubscribeOptions options) {
  auto mailbox = std::make_shared<Mailbox>(++last_id_, std::move(options));
  auto channel = directory_.use(name);
  channel->join(mailbox);
  return {std::move(channel), std::move(mailbox)};
}

BusStats Bus::stats() const {
  return {counters_.channels, counters_.subscribers, counters_.published.total(), counters_.delivered.total(),
          counters_.lagged.total()};
}

}  // namespace divan::events
