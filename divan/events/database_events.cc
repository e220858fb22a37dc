#include "divan/events/database_events.h"

#include <array>

namespace divan::events {

namespace {

constexpr std::array<std::string_view, 6> kNames = {"created",      "deleted",       "updated",
                                                    "ddoc_updated", "local_updated", "index_commit"};

}  // namespace

std::string_view kind_name(DatabaseEvent kind) { return kNames.at(static_cast<std::size_t>(kind)); }

std::optional<DatabaseEvent> database_event_of(std::string_view kind) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == kind) return static_cast<DatabaseEvent>(i);
  }
  return std::nullopt;
}

std::string database_channel(std::string_view database) { return channel_name({"_db", database}); }

std::string_view all_databases_channel() {
  static const std::string name = channel_name({"_dbs"});
  return name;
}

void publish_database_event(Bus& bus, std::string_view database, DatabaseEvent kind, std::string_view id) {
  const auto make_event = [&] {
    return Event{std::string(kind_name(kind)), std::string(database), std::string(id), {}};
  };
  bus.publish(database_channel(database), make_event);
  bus.publish(all_databases_channel(), make_event);
}

}  // namespace divan::events
