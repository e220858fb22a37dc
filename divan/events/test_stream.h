// For tests: a subscriber's stream as text.
#pragma once

#include <fmt/core.h>

#include <string>
#include <vector>

#include "divan/events/bus.h"

namespace divan::events {

/// An event that has a kind only.
inline Event event_of(std::string kind) { return {std::move(kind), {}, {}, {}}; }

/// Events by their kind, markers as "lagged(n)".
inline std::string text_of(const Message& message) {
  return message.event ? message.event->kind : fmt::format("lagged({})", message.lagged);
}

/// Reads all entries of the mailbox.
inline std::vector<std::string> drain(Subscription& subscription) {
  std::vector<std::string> texts;
  while (const auto message = subscription.try_next()) texts.push_back(text_of(*message));
  return texts;
}

}  // namespace divan::events
