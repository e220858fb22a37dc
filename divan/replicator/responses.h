// Responses of CouchDB's replication protocol (https://docs.couchdb.org/en/stable/replication/protocol.html).
// They come from other servers: whatever they are, the functions throw Error 502 "bad_response" or return
// something that is valid. `json` is in json::compact()'s form.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/error.h"
#include "divan/replicator/peer.h"

namespace divan::replicator {

/// "The other server's response " and `what`.
Error bad_response(std::string_view what);

/// A member of an object that must be a string.
std::string string_in(std::string_view object, std::string_view name);
/// A member that is a sequence: a string, in old servers a number, in some a JSON array.
std::string sequence_in(std::string_view object, std::string_view name);

/// Of a revision, such as "1-abc", in JSON.
docs::Revision revision_of(std::string_view json);

/// Of `_changes` with this limit.
ChangesPage parse_changes(std::string_view json, std::size_t limit);

/// Of `_revs_diff` about these documents: revisions that were not in the request are left out, since a filter
/// may exclude them.
std::vector<MissingRevisions> parse_missing(std::string_view json,
                                            std::span<const ChangedDocument> documents);

using AcceptDocument = std::function<void(const MissingRevisions& wanted, std::string_view document)>;

/// Of `_bulk_get`. Calls `accept` with each document, and returns the number of revisions that the source
/// does not have or may not give. Throws 503 "source_failed" after other errors, and if nothing is said of a
/// document that is wanted: it would never be copied.
std::size_t parse_bulk_get(std::string_view json, std::span<const MissingRevisions> wanted,
                           const AcceptDocument& accept);
/// The same, of a document with `open_revs`.
std::size_t parse_open_revs(std::string_view json, const MissingRevisions& wanted,
                            const AcceptDocument& accept);

/// Of `_bulk_docs` with so many documents: returns how many were refused. Throws 412 "missing_stub", and 503
/// "target_failed" if a document was not written for another reason than itself.
std::size_t parse_bulk_docs(std::string_view json, std::size_t documents);

}  // namespace divan::replicator
