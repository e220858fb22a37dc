// The feed of what happened to databases, `/_db_updates`, as its readers see it.
//
// One row for each database and kind of event, at the place of its last occurrence. recording.h says how they
// come there.
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

/// Receives a row; answers whether to go on.
using UpdateVisitor = std::function<bool(const Update&)>;

/// Visits the rows after `since`. Reads a snapshot.
void visit_updates(kv::Transaction& tx, const kv::Versionstamp& since, const UpdateVisitor& visit);

/// Visits the rows before `before` (all, if it is nothing) and after `since`, the last one first. Reads a
/// snapshot.
void visit_updates_backwards(kv::Transaction& tx, const kv::Versionstamp& since,
                             const std::optional<kv::Versionstamp>& before, const UpdateVisitor& visit);

/// The sequence of the last row; zero if there is none.
kv::Versionstamp last_update(kv::Transaction& tx);

/// The channel on which it is published that the feed has new rows (without saying which).
const std::string& feed_channel();

}  // namespace divan::updates
