// How what happens to databases gets into the feed, and to the other nodes of a shared store.
//
// Creations and deletions move their rows in their own transactions. Updates of documents do not: a busy
// database's writers would all fight over its row. They leave a mark instead, a write without a read, which
// conflicts with nothing; the sequencer turns marks into rows afterwards. A mark is part of the transaction
// that it tells of, so no update can be missing from the feed for good, whenever the process dies.
//
// Processes that share a store are nodes with names. Events on a bus stay in their process, so a node leaves
// marks for events of all kinds, with its name, and the sequencer (any node's) moves a row for each in a log
// of events: one row for each database, kind, id and node, at the place of its last occurrence. All nodes
// read on in that log when it grows (follower.h). A process that has its store to itself has no name, and
// none of this is written.
#pragma once

#include "divan/docs/catalog.h"

namespace divan::updates {

/// What is recorded.
struct Recording {
  bool feed = true;            // rows of the feed
  std::string_view node = {};  // not empty: events for the other nodes
};

/// What a transaction writes by record_change().
struct Recorded {
  std::size_t rows = 0;  // of the feed
  bool mark = false;     // for the sequencer
};

/// For the catalog's hook: records what a transaction does to a database. "_global_changes" is left out of
/// the feed. The id counts only for ddoc_updated and index_commit.
Recorded record_change(kv::Transaction& tx, const docs::Database& database, events::DatabaseEvent kind,
                       std::string_view id, const Recording& recording);

/// What became of marks.
struct Sequenced {
  std::size_t marks = 0;
  std::size_t rows = 0;  // of the feed
};

/// Says on a remote store that sequence_marks() will be called.
void prefetch_marks(kv::Transaction& tx, std::size_t limit);

/// Turns at most `limit` marks into rows, or drops them, if `recording` asks for none. `recording.node` does
/// not count here: marks have their own.
Sequenced sequence_marks(kv::Transaction& tx, std::size_t limit, const Recording& recording);

/// An event as the log has it.
struct NodeEvent {
  kv::Versionstamp place;
  std::string database;
  events::DatabaseEvent kind;
  std::string id;
  std::string node;  // where it happened
};

/// At most `limit` events of the log after `since`. Reads a snapshot.
std::vector<NodeEvent> read_events(kv::Transaction& tx, const kv::Versionstamp& since, std::size_t limit);

/// The place of the log's last event; zero if there is none.
kv::Versionstamp last_event(kv::Transaction& tx);

/// A watch that fires when the log grows; null if the store has too many.
std::shared_ptr<kv::Watch> watch_events(kv::Transaction& tx);

/// Whether events of this kind have rows in the feed.
bool is_in_feed(events::DatabaseEvent kind);

}  // namespace divan::updates
