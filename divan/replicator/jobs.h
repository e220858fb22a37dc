// Replications as jobs: their data, ids and requests.
#pragma once

#include "divan/jobs/queue.h"
#include "divan/replicator/replication.h"

namespace divan::replicator {

/// The type of their jobs. The id of a job is Replication::id().
inline constexpr std::string_view kJobType = "replication";

/// The data of a job.
struct ReplicationJob {
  Replication replication{};
  std::string json{};      ///< what it was parsed from
  std::string database{};  ///< of the document that asks for it; empty: POST /_replicate
  std::string document{};  ///< its id

  std::string to_json() const;
  /// Throws bad_request.
  static ReplicationJob parse(std::string_view json);
  /// The same; nullopt for other data, with which a client may have added a job of the type.
  static std::optional<ReplicationJob> parse_or_null(std::string_view json);
};

/// Declares the type as the server's own.
void declare_replications(jobs::Queue& queue, kv::Database& store);

/// Adds the job of a replication unless it is running with the same data, or a document has asked for it and
/// it has not ended. Returns its id.
/// `limits`: from jobs::job_limits().
std::string request_replication(jobs::Queue& queue, kv::Transaction& tx, const ReplicationJob& job,
                                std::string_view server_uuid, std::string limits = {});

}  // namespace divan::replicator
