// What travels on a channel, and what a subscriber takes out of its mailbox.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace divan::events {

/// Something that happened. Immutable once published: all subscribers share one copy.
struct Event {
  std::string kind;      ///< what happened; documented with the channel that it is published on
  std::string database;  ///< the database that it happened to; empty if it is not about one
  std::string id;        ///< the document or index that it happened to; empty if it is not about one
  std::string payload;   ///< anything else, as JSON text by convention; may be empty
};

using EventPtr = std::shared_ptr<const Event>;

/// One entry of a subscriber's stream: an event, or a marker that stands where events are missing because the
/// subscriber was slow. A value type.
struct Message {
  std::uint64_t subscription;  ///< Subscription::id() of the subscription that it came through
  EventPtr event;              ///< null in a marker
  std::uint64_t lagged = 0;    ///< how many events are missing at this place; 0 beside an event
};

}  // namespace divan::events
