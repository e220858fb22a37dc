// Events, and the messages that a subscriber reads from its mailbox.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace divan::events {

/// An event. Immutable once published: all subscribers share one copy.
struct Event {
  std::string kind;      ///< what happened; documented with the channel that it is published on
  std::string database;  ///< the database concerned; may be empty
  std::string id;        ///< the document or index concerned; may be empty
  std::string payload;   ///< further data, by convention JSON text; may be empty
};

using EventPtr = std::shared_ptr<const Event>;

/// One entry of a subscriber's stream: an event, or a marker in the position of events that were dropped
/// because the subscriber was slow. A value type.
struct Message {
  std::uint64_t subscription;  ///< Subscription::id() of the subscription
  EventPtr event;              ///< null in a marker
  std::uint64_t lagged = 0;    ///< the number of events dropped here; 0 with an event
};

}  // namespace divan::events
