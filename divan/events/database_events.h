// Events of databases. Each is published on two channels: that of the database, ("_db", name), and that of
// all databases, ("_dbs"). A subscriber of both gets two messages.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "divan/events/bus.h"

namespace divan::events {

/// The kinds of event, named as in CouchDB's couch_event. Event::kind is the name, Event::database the
/// database.
enum class DatabaseEvent {
  created,        ///< the database was created
  deleted,        ///< the database was deleted
  updated,        ///< documents changed; published after the commit, once per batch
  ddoc_updated,   ///< a design document changed, in addition to `updated`; Event::id is its id
  local_updated,  ///< a _local document changed
  index_commit,   ///< an index reached a new sequence; Event::id identifies the index
};

/// "created", "deleted" and so on.
std::string_view kind_name(DatabaseEvent kind);

/// The kind of this name; nullopt if it is unknown.
std::optional<DatabaseEvent> database_event_of(std::string_view kind);

/// The channel of one database's events.
std::string database_channel(std::string_view database);

/// The channel of every database's events.
std::string_view all_databases_channel();

/// Publishes one message on the database's channel and one on the channel of all databases. `id` is for
/// ddoc_updated and index_commit.
void publish_database_event(Bus& bus, std::string_view database, DatabaseEvent kind,
                            std::string_view id = {});

}  // namespace divan::events
