// How changes of databases are recorded in the feed and sent to the other nodes of a shared store.
//
// Transactions that create or delete a database move its rows of the feed themselves. Updates of documents do
// not, since all writers of a busy database would conflict on its row. They leave a mark instead, which is a
// write without a read and conflicts with nothing. The sequencer turns marks into rows later. A mark is part
// of the transaction that updates the document, so no update is missing from the feed for good, even if the
// process dies.
//
// Processes that share a store are nodes with names. The events of a bus stay in its process, so a node also
// leaves marks, with its name, for events of all kinds. The sequencer of any node turns them into rows of a
// log of events, which has one row for each database, kind, id and node, at the position of the last such
// event. All nodes read this log when it grows (follower.h). A process that does not share its store has no
// name and writes no such rows.
#pragma once

#include "divan/docs/catalog.h"

namespace divan::updates {

/// Which records a transaction writes for its updates.
struct Recording {
  bool feed = true;            // rows of the feed
  std::string_view node = {};  // if not empty, also events for the other nodes
};

/// What record_change() has written.
struct Recorded {
  std::size_t rows = 0;  // of the feed
  bool mark = false;     // for the sequencer
};

/// Records a change of a database in the transaction that makes it; called by a hook of the catalog.
/// "_global_changes" is left out of the feed. `id` is used for ddoc_updated and index_commit only.
Recorded record_change(kv::Transaction& tx, const docs::Database& database, events::DatabaseEvent kind,
                       std::string_view id, const Recording& recording);

/// The marks that sequence_marks() has handled, and the rows that it has written.
struct Sequenced {
  std::size_t marks = 0;
  std::size_t rows = 0;  // of the feed
};

/// On a remote store, prefetches what sequence_marks() reads.
void prefetch_marks(kv::Transaction& tx, std::size_t limit);

/// Turns at most `limit` marks into rows, or drops them if `recording.feed` is false. `recording.node` is not
/// used, since each mark has its node.
Sequenced sequence_marks(kv::Transaction& tx, std::size_t limit, const Recording& recording);

/// A row of the log of events.
struct NodeEvent {
  kv::Versionstamp position;
  std::string database;
  events::DatabaseEvent kind;
  std::string id;
  std::string node;  // where it happened
};

/// Returns at most `limit` events of the log after `since`. Reads a snapshot.
std::vector<NodeEvent> read_events(kv::Transaction& tx, const kv::Versionstamp& since, std::size_t limit);

/// Returns the position of the last event of the log; zero if there is none.
kv::Versionstamp last_event(kv::Transaction& tx);

/// Returns a watch that fires when the log grows; null if the store has too many watches.
std::shared_ptr<kv::Watch> watch_events(kv::Transaction& tx);

/// Returns true if events of this kind have rows in the feed.
bool is_in_feed(events::DatabaseEvent kind);

}  // namespace divan::updates
