// Where the rows of the module are (docs/keyspace.md). Internal to the module.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "divan/kv/tuple_packer.h"

namespace divan::updates {

/// Where CouchDB keeps its feed. Here it is a database like any other, but clients that make it do not expect
/// it in the feed.
inline constexpr std::string_view kOwnDatabase = "_global_changes";

/// ("updates", part)
inline std::string part_key(std::string_view part) {
  std::string key;
  kv::tuple::Packer(key).string("updates").string(part);
  return key;
}

/// A row of the feed, by its place.
inline std::string feed_key(const kv::Versionstamp& place) {
  std::string key = part_key("feed");
  kv::tuple::Packer(key).versionstamp(place);
  return key;
}

/// Where a row of the feed is.
inline std::string row_key(std::string_view database, std::string_view kind) {
  std::string key = part_key("row");
  kv::tuple::Packer(key).string(database).string(kind);
  return key;
}

/// A row of the log of events that nodes read of each other, by its place.
inline std::string event_key(const kv::Versionstamp& place) {
  std::string key = part_key("event");
  kv::tuple::Packer(key).versionstamp(place);
  return key;
}

/// Where a row of that log is: what all rows of one database have in common.
inline std::string places_key(std::string_view database) {
  std::string key = part_key("place");
  kv::tuple::Packer(key).string(database);
  return key;
}

/// Written anew with each transaction that adds to that log. Nodes watch it.
inline const std::string& log_changed_key() {
  static const std::string key = part_key("told");
  return key;
}

/// (versionstamp) of the transaction that writes it, in the form of a versionstamped write.
inline std::string stamped_value(std::uint16_t number = 0) {
  std::string value;
  kv::tuple::Packer(value).versionstamp(kv::Versionstamp::incomplete(number)).finish_versionstamped();
  return value;
}

}  // namespace divan::updates
