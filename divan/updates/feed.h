// The feed of what happened to databases: `/_db_updates`.
//
// One row for each database and kind of event, at the place of its last occurrence. Creations and deletions
// move their rows in their own transactions. Updates of documents do not: a busy database's writers would all
// fight over its row. They leave a mark instead, a write without a read, which conflicts with nothing; the
// sequencer turns marks into rows afterwards. A mark is part of the transaction that it tells of, so no
// update can be missing from the feed for good, whenever the process dies.
//
// Keys (docs/keyspace.md): ("updates", "feed", versionstamp), ("updates", "row", database, kind),
// ("updates", "dirty", shard, database).
#pragma once

#include <functional>

#include "divan/docs/catalog.h"

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

/// For the catalog's hook: records what a transaction does to a database (any but "_global_changes").
void record_change(kv::Transaction& tx, const docs::Database& database, events::DatabaseEvent kind);

/// Turns at most `limit` marks into rows; answers how many there were.
std::size_t sequence_marks(kv::Transaction& tx, std::size_t limit);

/// Drops all marks.
void drop_marks(kv::Transaction& tx);

/// The channel on which it is published that the feed has new rows (without saying which).
std::string feed_channel();

}  // namespace divan::updates
