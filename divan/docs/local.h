// Local documents: not replicated, without history, in no feed and no index.
#pragma once

#include "divan/docs/reader.h"

namespace divan::docs {

struct LocalDocument {
  std::int64_t revision = 0;  // shown as "0-N"
  std::string body;
};

/// `id` begins with "_local/".
std::optional<LocalDocument> read_local(kv::Transaction& tx, const Database& database, std::string_view id);

/// Writes or (if `document.deleted`) removes it and answers the new revision; throws conflict (409) unless
/// `document.revision` is the present one. Removing a missing one: not_found.
std::int64_t write_local(kv::Transaction& tx, const Database& database, const IncomingDocument& document);

/// Receives an id and its document; returns false to end the visit.
using LocalVisitor = std::function<bool(const std::string& id, const LocalDocument&)>;

/// Visits the documents of a range of ids, which begin with "_local/", in the order of the ids' bytes. Reads
/// a snapshot.
void visit_locals(kv::Transaction& tx, const Database& database, const DocumentRange& range,
                  const LocalVisitor& visit);

}  // namespace divan::docs
