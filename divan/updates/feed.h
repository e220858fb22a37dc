// The feed of changes of databases, `/_db_updates`, as its readers see it.
//
// It has one row for each database and kind of event, at the position of the last such event. recording.h
// explains how rows are written.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "divan/kv/store.h"
#include "divan/kv/tuple_versionstamp.h"

namespace divan::updates {

/// A row of the feed.
struct Update {
  kv::Versionstamp sequence;
  std::string database;
  std::string kind;  // "created", "updated" or "deleted"
};

/// Receives a row; returns false to stop.
using UpdateVisitor = std::function<bool(const Update&)>;

/// Visits the rows after `since`. Reads a snapshot.
void visit_updates(kv::Transaction& tx, const kv::Versionstamp& since, const UpdateVisitor& visit);

/// Visits the rows before `before` (all if it is nullopt) and after `since`, the last one first. Reads a
/// snapshot.
void visit_updates_backwards(kv::Transaction& tx, const kv::Versionstamp& since,
                             const std::optional<kv::Versionstamp>& before, const UpdateVisitor& visit);

/// The sequence of the last row; zero if there is none.
kv::Versionstamp last_update(kv::Transaction& tx);

/// The channel on which an event is published whenever the feed has new rows. The event does not say which.
const std::string& feed_channel();

}  // namespace divan::updates
