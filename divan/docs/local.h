// Local documents: not replicated, without history, not in feeds and indexes.
#pragma once

#include "divan/docs/reader.h"

namespace divan::docs {

struct LocalDocument {
  std::int64_t revision = 0;  // shown as "0-N"
  std::string body;
};

/// Returns nullopt if the document does not exist. `id` must begin with "_local/".
std::optional<LocalDocument> read_local(kv::Transaction& tx, const Database& database, std::string_view id);

/// Writes the document, or removes it if `document.deleted`, and returns the new revision. Throws conflict
/// (409) unless `document.revision` is the current one, and not_found if a missing one is to be removed.
/// Attachments are not stored, as in CouchDB.
std::int64_t write_local(kv::Transaction& tx, const Database& database, const IncomingDocument& document);

/// Receives an id and its document; returns true to continue.
using LocalVisitor = std::function<bool(const std::string& id, const LocalDocument&)>;

/// Visits the documents of a range of ids, which begin with "_local/", in the byte order of ids. Reads a
/// snapshot.
void visit_locals(kv::Transaction& tx, const Database& database, const DocumentRange& range,
                  const LocalVisitor& visit);

}  // namespace divan::docs
