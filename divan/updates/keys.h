// The keys of the module (docs/keyspace.md). Internal to the module.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "divan/kv/tuple_packer.h"

namespace divan::updates {

/// The database in which CouchDB keeps its feed. In Divan it is an ordinary database, but as in CouchDB it is
/// not in the feed.
inline constexpr std::string_view kOwnDatabase = "_global_changes";

/// ("updates", part)
inline std::string part_key(std::string_view part) {
  std::string key;
  kv::tuple::Packer(key).string("updates").string(part);
  return key;
}

/// A row of the feed.
inline std::string feed_key(const kv::Versionstamp& position) {
  std::string key = part_key("feed");
  kv::tuple::Packer(key).versionstamp(position);
  return key;
}

/// The position of a row of the feed.
inline std::string row_key(std::string_view database, std::string_view kind) {
  std::string key = part_key("row");
  kv::tuple::Packer(key).string(database).string(kind);
  return key;
}

/// A row of the log of events, which other nodes read.
inline std::string event_key(const kv::Versionstamp& position) {
  std::string key = part_key("event");
  kv::tuple::Packer(key).versionstamp(position);
  return key;
}

/// The prefix of the positions of a database's rows in that log.
inline std::string positions_key(std::string_view database) {
  std::string key = part_key("place");
  kv::tuple::Packer(key).string(database);
  return key;
}

/// Written by each transaction that adds to that log. Nodes watch it.
inline const std::string& log_changed_key() {
  static const std::string key = part_key("told");
  return key;
}

/// A value for set_versionstamped_value(): the versionstamp of the transaction that writes it.
inline std::string stamped_value(std::uint16_t number = 0) {
  std::string value;
  kv::tuple::Packer(value).versionstamp(kv::Versionstamp::incomplete(number)).finish_versionstamped();
  return value;
}

}  // namespace divan::updates
