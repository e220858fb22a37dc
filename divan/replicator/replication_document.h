// Documents of replicator databases, each of which asks for a replication
// (https://docs.couchdb.org/en/stable/replication/replicator.html). The outcome is written into the document:
// `_replication_state` ("completed" or "failed"), `_replication_state_time`, `_replication_state_reason`,
// `_replication_stats` and `_replication_id`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "divan/docs/catalog.h"
#include "divan/docs/document.h"
#include "divan/replicator/jobs.h"

namespace divan::replicator {

inline constexpr std::string_view kReplicatorDatabase = "_replicator";

/// Returns true for "_replicator" and names that end with "/_replicator".
bool is_replicator_database(std::string_view name);

/// Throws document_too_large (413) above 4,000,000 bytes, and forbidden (403) unless the document, which is
/// to be written to a replicator database, is a valid replication, design or local document, a deletion, or
/// has an outcome. Those who are no administrators of the server may not name databases of the server, nor
/// users: such replications run with all rights.
void check_document(const docs::IncomingDocument& document, bool is_server_admin);

/// The members of a body that describe a replication: without those of the outcome, and attachments.
std::string without_outcome(std::string_view body);

/// The value of `_replication_state` if it is an outcome: "completed" or "failed".
std::optional<std::string> outcome_of(std::string_view body);

/// The job that a document asks for. Throws bad_request.
ReplicationJob job_of_document(const std::string& database, const std::string& id, std::string_view body);

struct ReplicationOutcome {
  std::string id{};      ///< of the replication; empty: unknown
  std::string reason{};  ///< of a failure; empty: it is completed
  std::string stats{};   ///< JSON, of a completed one
};

/// Writes the outcome of a job into the document that has asked for it, unless the document has been changed
/// since, or is gone. `now_ms`: milliseconds since 1970. Must be the transaction's only write to the
/// database.
void record_outcome(kv::Transaction& tx, docs::Catalog& catalog, const ReplicationJob& job,
                    const ReplicationOutcome& outcome, std::int64_t now_ms);

/// The same for an invalid document, whose winner is `winner`. Returns false if it is too
/// large, and was not written.
bool record_failure(kv::Transaction& tx, const docs::Database& database, const std::string& id,
                    const docs::Leaf& winner, std::string_view reason, std::int64_t now_ms);

/// A time in milliseconds since 1970, as CouchDB shows it: "2026-11-27T09:30:00Z".
std::string utc_time(std::int64_t ms);

}  // namespace divan::replicator
