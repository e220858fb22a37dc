// Reads documents: their revision trees, bodies, and the totals of a database.
#pragma once

#include <algorithm>
#include <functional>

#include "divan/docs/contents.h"
#include "divan/docs/document.h"
#include "divan/docs/document_range.h"

namespace divan::docs {

/// The leaves of a document, winner first; empty if the document never existed.
RevTree read_tree(kv::Transaction& tx, const Database& database, std::string_view id,
                  kv::Isolation isolation = kv::Isolation::serializable);

/// The body at a sequence, as "{...}". Throws an internal error if chunks are missing.
std::string read_body(kv::Transaction& tx, const Database& database, const kv::Versionstamp& sequence,
                      std::uint32_t chunks);
inline std::string read_body(kv::Transaction& tx, const Database& database, const Leaf& leaf) {
  return read_body(tx, database, leaf.sequence, leaf.chunks);
}

/// The same, with its attachments in this form.
std::string read_body(kv::Transaction& tx, const Database& database, const Leaf& leaf, AttachmentForm form);

/// A revision of a document with its body and tree.
struct StoredRevision {
  RevTree tree;
  std::size_t leaf = 0;       // the index in `tree` of the requested revision,
  std::optional<Leaf> old{};  // unless it is not a leaf
  std::string body;

  const Leaf& revision() const { return old ? *old : tree[leaf]; }
};

/// Returns the winner, or `revision`, a leaf or an ancestor whose body is stored (with `latest`, if it is no
/// longer a leaf: the leaf that descends from it). Throws not_found "missing" or "deleted" as CouchDB does,
/// and check_id_in()'s errors. Returns a deleted winner only if `revision` names it or `deleted` is set.
StoredRevision find_document(kv::Transaction& tx, const Database& database, std::string_view id,
                             const std::optional<Revision>& revision, bool latest = false,
                             bool deleted = false);

/// The totals that GET /db shows.
struct DatabaseInfo {
  std::int64_t doc_count = 0;
  std::int64_t doc_del_count = 0;
  std::int64_t body_bytes = 0;
  std::int64_t attachment_bytes = 0;  // of contents, each once
  OldSizes old;                       // the attachments are part of attachment_bytes
  kv::Versionstamp update_seq;
  kv::Versionstamp purge_seq;  // of the last purge; zero if there is none

  /// Bytes of all bodies and contents of attachments.
  std::int64_t file_bytes() const { return body_bytes + attachment_bytes + old.bodies; }
  /// Bytes that a compaction leaves. An estimate, which is too low if other revisions have attachments that
  /// were counted in `old`.
  std::int64_t active_bytes() const {
    return body_bytes + std::max<std::int64_t>(attachment_bytes - old.attachments, 0);
  }
};
DatabaseInfo read_info(kv::Transaction& tx, const Database& database);

/// Adds to the counters of old revisions.
void add_old_sizes(kv::Transaction& tx, const Database& database, const OldSizes& added);

/// The sequence of the last change, or of the last document of which a purge has left nothing (purge.h); zero
/// if there is none.
kv::Versionstamp last_sequence(kv::Transaction& tx, const Database& database,
                               kv::Isolation isolation = kv::Isolation::snapshot);

/// Prefetches what last_sequence() reads.
void prefetch_last_sequence(kv::Prefetch& reads, const Database& database);

/// Receives a document's id and winner; returns true to continue.
using DocumentVisitor = std::function<bool(const std::string& id, const Leaf& winner)>;

/// Visits the documents that are not deleted, in the byte order of ids. Reads a snapshot.
void visit_documents(kv::Transaction& tx, const Database& database, const DocumentRange& range,
                     const DocumentVisitor& visit);

}  // namespace divan::docs
