// Checkpoints: how far a replication has come, in the same local document `_local/{id}` of both databases, as
// CouchDB and PouchDB write it.
// https://docs.couchdb.org/en/stable/replication/protocol.html#retrieve-replication-logs-from-source-and-target
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace divan::replicator {

/// What a session, one run of a replication, has done so far.
struct Session {
  std::string id{};
  std::string start_time{};  ///< as in HTTP
  std::string end_time{};
  std::string start_last_seq = "0";
  std::string end_last_seq = "0";
  std::int64_t missing_checked = 0;  ///< revisions
  std::int64_t missing_found = 0;
  std::int64_t docs_read = 0;
  std::int64_t docs_written = 0;
  std::int64_t doc_write_failures = 0;

  /// Its element of `history`.
  std::string json() const;
};

/// The history of a checkpoint.
struct Checkpoint {
  std::string session_id;
  std::string source_last_seq;
  std::vector<std::string> history{};  ///< JSON objects, the last session first

  /// nullopt if it is not what a replicator writes.
  static std::optional<Checkpoint> parse(std::string_view json);
};

/// Where a replication goes on: the sequence of the last session that both sides recorded; nullopt: there is
/// none.
std::optional<std::string> common_sequence(const std::optional<Checkpoint>& source,
                                           const std::optional<Checkpoint>& target);

/// The body of a checkpoint, with the history of earlier sessions; at most kMaxHistory sessions are kept.
std::string checkpoint_body(const Session& session, const std::vector<std::string>& earlier);
inline constexpr std::size_t kMaxHistory = 50;
/// The format of ids and checkpoints, of CouchDB.
inline constexpr int kIdVersion = 4;

}  // namespace divan::replicator
