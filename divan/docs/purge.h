// Purging: the removal of leaves as if they had never been written
// (https://docs.couchdb.org/en/stable/api/database/misc.html#db-purge).
//
// A purge removes leaves with their bodies. If the document has others, its winner is written again, with a
// new sequence, so that the document has a new change. If it has none, no row of the document remains; a
// row with a sequence of the same transaction records its id for the indexes. They read these rows together
// with the changes (changes_for_indexes()), and so remove the document's rows, however far they are behind.
// Such a row is needed until all indexes have processed it (index/purged_documents.h).
//
// Purges themselves are recorded, whether or not they removed something: clients can list the last ones.
#pragma once

#include <functional>
#include <span>

#include "divan/docs/changes.h"

namespace divan::docs {

/// Leaves of a document that are to be purged. Other revisions have no effect.
struct PurgeRequest {
  std::string id;
  std::vector<Revision> revisions;
};

/// Purges leaves in as many transactions as their sizes need, and removes records of purges beyond the
/// database's limit. Returns for each request the leaves that were purged, in their order. Neither the users'
/// rights nor `validate_doc_update` are checked. Throws illegal_docid (400) for an id that no document of the
/// database may have, and bad_request for one of a local document; nothing is purged then. Throws not_found
/// (404) if the database is deleted meanwhile, and what `checkpoint` throws between two transactions; purges
/// before that are done.
std::vector<std::vector<Revision>> purge(kv::Database& store, const Database& database,
                                         std::span<const PurgeRequest> requests,
                                         const Checkpoint& checkpoint = {});

/// The record of a purge: what was requested.
struct PurgeRecord {
  kv::Versionstamp sequence;
  PurgeRequest request;
};
/// Returns true to continue.
using PurgeRecordVisitor = std::function<bool(const PurgeRecord&)>;
/// Visits the records of purges, the oldest first. Reads a snapshot. A purge of very many revisions has
/// several records.
void visit_purge_records(kv::Transaction& tx, const Database& database, const PurgeRecordVisitor& visit);
/// Decodes the record of a purge: the part of its key after the kind of row, and its value. Throws an
/// internal error if it is damaged.
PurgeRecord decode_purge_record(std::string_view key_after_kind, std::string_view value);

/// Sets the maximum number of records, at least 1, and removes those beyond it. Throws not_found (404).
void set_purge_records_limit(kv::Database& store, Catalog& catalog, std::string_view database,
                             std::int64_t limit);

/// A document of which a purge has left nothing.
struct PurgedDocument {
  kv::Versionstamp sequence;
  std::string id;
};
/// Decodes the row of a purged document, as decode_purge_record().
PurgedDocument decode_purged_document(std::string_view key_after_kind, std::string_view value);

/// The changes after `since` for an index, at most `limit`: in the order of their sequences, each document
/// once. A document of which a purge has left nothing is a deleted one with generation 0.
struct IndexChanges {
  std::vector<Change> changes;
  bool is_all = false;  ///< there are no more
};
/// Reads a snapshot.
IndexChanges changes_for_indexes(kv::Transaction& tx, const Database& database, const kv::Versionstamp& since,
                                 std::size_t limit);
/// Returns the number of rows that changes_for_indexes() has after `since`, at most `limit`. It counts row by
/// row.
std::int64_t count_index_changes(kv::Transaction& tx, const Database& database, const kv::Versionstamp& since,
                                 std::int64_t limit);

}  // namespace divan::docs
