// What wakes a feed whose rows are announced on a channel of the bus.
#pragma once

#include "divan/events/bus.h"

namespace divan::api {

/// Wakes when a bus channel gets an event. One thread at a time.
class ChannelWaker {
 public:
  ChannelWaker(events::Bus& bus, std::string channel) : bus_(bus), channel_(std::move(channel)) {}

  void arm(const std::function<void()>& wake) {
    if (!subscription_) {
      // What happened does not matter, only that something did.
      subscription_.emplace(bus_.subscribe(channel_, {.max_events = 0, .notify = wake}));
      return;
    }
    while (subscription_->try_next()) {}
  }

 private:
  events::Bus& bus_;
  const std::string channel_;
  std::optional<events::Subscription> subscription_;
};

}  // namespace divan::api
