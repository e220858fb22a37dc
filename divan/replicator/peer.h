// The databases between which documents are replicated: a local one, or one that is reached by HTTP.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "divan/docs/revision.h"
#include "divan/replicator/replication.h"

namespace divan::replicator {

/// A document of the source's changes, with its leaves.
struct ChangedDocument {
  std::string id;
  std::vector<docs::Revision> revisions;
};

struct ChangesPage {
  std::vector<ChangedDocument> documents{};
  std::string last_sequence;              ///< of the page
  bool is_last = false;                   ///< there was no further change
  std::optional<std::int64_t> pending{};  ///< changes after it, if known
};

/// Revisions of a document that the target lacks.
struct MissingRevisions {
  std::string id;
  std::vector<docs::Revision> revisions;
  std::vector<docs::Revision> ancestors;  ///< revisions that the target has, perhaps ancestors of these
};

/// Documents that were read: JSON with `_revisions`, and with the data of attachments.
struct ReadDocuments {
  std::size_t taken = 0;  ///< of what was wanted, the first ones, at least one: their bytes are bounded
  std::vector<std::string> documents{};
  std::size_t failures = 0;  ///< revisions that could not be read
};
/// A read ends at about this many bytes.
inline constexpr std::size_t kReadBytes = 4 << 20;

struct StoredCheckpoint {
  std::string revision;  ///< "0-1"
  std::string body;      ///< JSON, without `_id` and `_rev`
};

/// One side of a replication. Calls block. They throw Error: of the database (404, 401, 403 and so on), or
/// 503 or 504 if it cannot be reached now. Used by one thread, except stop().
class Peer {
 public:
  virtual ~Peer() = default;

  /// Creates the database with these parameters (a JSON object) unless it exists.
  virtual void create(std::string_view params) = 0;
  /// The database's present sequence. Throws not_found if there is no such database.
  virtual std::string update_sequence() = 0;

  virtual std::optional<StoredCheckpoint> read_checkpoint(std::string_view id) = 0;
  /// Replaces the one with this revision; returns the new one. Throws conflict.
  virtual std::string write_checkpoint(std::string_view id, const std::optional<std::string>& revision,
                                       std::string_view body) = 0;

  /// The next changes after `since`, at most `limit`.
  virtual ChangesPage changes(const std::string& since, std::size_t limit,
                              const Replication& replication) = 0;
  /// Blocks until there may be changes after `since`, or for about `most`. Returns false once stop() was
  /// called.
  virtual bool wait_for_changes(const std::string& since, const Replication& replication,
                                std::chrono::milliseconds most) = 0;

  virtual std::vector<MissingRevisions> missing(std::span<const ChangedDocument> documents) = 0;
  virtual ReadDocuments read(std::span<const MissingRevisions> wanted) = 0;
  /// Writes documents as they are. Returns the number of those that were refused.
  virtual std::size_t write(std::span<const std::string> documents) = 0;

  /// Ends the present call of wait_for_changes() and all later ones. Called by any thread.
  virtual void stop() = 0;
};

}  // namespace divan::replicator
