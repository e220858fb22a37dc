// The databases between which documents are replicated: a local one, or one that is reached by HTTP.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "divan/base/clock.h"
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

/// The content of an attachment that the target may lack.
struct AttachmentContent {
  std::string name;
  std::string type;
  std::uint64_t length = 0;
};

/// A revision with contents that are too large to be part of it.
struct LargeDocument {
  std::string id;
  docs::Revision revision;
  std::string json;  ///< with `_revisions`, and stubs of all attachments
  std::vector<AttachmentContent> contents{};
};

/// Documents that were read: JSON with `_revisions`, and with the data of those attachments that the target
/// may lack. The others are stubs.
struct ReadDocuments {
  /// Of what was wanted, the first ones: their bytes are bounded.
  std::size_t taken = 0;
  /// If only a part of the next one was read, its other revisions. Not empty if none was taken.
  std::vector<docs::Revision> rest{};
  std::vector<std::string> documents{};
  std::vector<LargeDocument> large{};
  std::size_t failures = 0;  ///< revisions that could not be read
};

/// The contents that a document in JSON, whose attachments are stubs, has and its `ancestors`, revisions of
/// the target, have not: those attached since the latest one of these.
std::vector<AttachmentContent> lacking_contents(std::string_view json,
                                                std::span<const docs::Revision> ancestors);
std::uint64_t total_length(std::span<const AttachmentContent> contents);
/// Contents of more bytes than this together are not part of a document that is read.
inline constexpr std::uint64_t kMaxInlineBytes = 256 << 10;

/// Text from another server for an error or a document: its first bytes, or a note if it is not UTF-8.
std::string_view shown_text(std::string_view text, std::size_t max_bytes);

/// Reads a content. Used by one thread.
class ContentReader {
 public:
  virtual ~ContentReader() = default;
  /// The next bytes, at most about a megabyte; empty at the end. Throws as Peer.
  virtual std::string next() = 0;
};
/// A read ends at about this many bytes.
inline constexpr std::size_t kReadBytes = 4 << 20;

struct StoredCheckpoint {
  std::string revision;  ///< "0-1"
  std::string body;      ///< JSON, without `_id` and `_rev`
};

/// Ends with this object.
class PeerWatch {
 public:
  virtual ~PeerWatch() = default;
  /// After this time there may be events for which `wake` is not called.
  virtual Duration poll_interval() const { return Duration::max(); }
};

/// One side of a replication. Calls block, except those that watch. They throw Error: of the database (404,
/// 401, 403 and so on), or 503 or 504 if it cannot be reached now. Used by one thread at a time.
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
  /// Calls `wake` when there may be changes after `since`, or the database cannot be reached any more: on any
  /// thread, perhaps several times, and perhaps after the end of the watch. It must be quick. The peer must
  /// outlive the watch.
  virtual std::unique_ptr<PeerWatch> watch_changes(const std::string& since, const Replication& replication,
                                                   std::function<void()> wake) = 0;
  /// Calls `wake` when the database is deleted, as watch_changes() does. Null if that is not noticed. Throws
  /// if it has been deleted, also if it exists again: then it lacks everything.
  virtual std::unique_ptr<PeerWatch> watch_deletion(std::function<void()>) { return nullptr; }

  virtual std::vector<MissingRevisions> missing(std::span<const ChangedDocument> documents) = 0;
  virtual ReadDocuments read(std::span<const MissingRevisions> wanted) = 0;
  /// Returns null if the revision or its attachment does not exist any more.
  virtual std::unique_ptr<ContentReader> open_content(const LargeDocument& document,
                                                      const AttachmentContent& content) = 0;

  /// Writes documents as they are. Returns the number of those that were refused. Throws missing_stub (412)
  /// if an attachment that is a stub is not there any more.
  virtual std::size_t write(std::span<const std::string> documents) = 0;
  /// The same for one document, whose contents are read from the source, in constant memory. Returns false if
  /// it was refused, or does not exist in the source any more.
  virtual bool write_large(const LargeDocument& document, Peer& source) = 0;
};

}  // namespace divan::replicator
