// Documents as JSON: parsing what clients send, and writing what they receive.
//
// Internally a document is its id, its revision and its body. The body is the JSON object without the members
// whose names begin with an underscore (except those of a replicator, `_replication_state` and so on), as the
// text that the client sent. The order of members and the spelling of numbers are preserved; white space
// between tokens is not; of duplicate members the last one remains.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/error.h"
#include "divan/docs/attachment.h"
#include "divan/docs/rev_tree.h"
#include "divan/kv/chunks.h"

namespace divan::docs {

/// Maximum size of a document in bytes of JSON: it must fit in one transaction. A smaller limit can be set
/// with Catalog::set_max_document_bytes.
inline constexpr std::size_t kMaxDocumentBytes = 8'000'000;
/// Approximate size of an attachment's rows, without its content, its name and its type.
inline constexpr std::size_t kAttachmentRowsBytes = 300;
/// The largest attachment unless [couchdb] max_attachment_size says otherwise, as in CouchDB.
inline constexpr std::int64_t kDefaultMaxAttachmentBytes = 1 << 30;

/// The reason of attachment_too_large (413), for a document that is too large with its attachments.
std::string too_large_reason(std::string_view id);
/// The error for an attachment above `[couchdb] max_attachment_size`.
Error attachment_too_large(std::string_view name);
/// Number of rows in the store of a body with this many bytes; 0 for {}.
constexpr std::uint32_t body_chunks(std::size_t bytes) { return bytes <= 2 ? 0 : kv::chunk_count(bytes); }
inline constexpr std::uint32_t kMaxBodyChunks = body_chunks(kMaxDocumentBytes);
/// Maximum size of a document id in bytes (zero bytes count twice): it must fit in keys together with an
/// index key.
inline constexpr std::size_t kMaxDocumentIdBytes = 4000;
/// Maximum number of revisions in `_revisions`.
inline constexpr std::size_t kMaxGivenRevisions = 10'000;

inline constexpr std::string_view kDesignPrefix = "_design/";
inline constexpr std::string_view kLocalPrefix = "_local/";

/// A document that a client sent.
struct IncomingDocument {
  std::string id;                         // empty: not given
  std::optional<Revision> revision;       // the first one of `_revisions`, otherwise `_rev`
  std::optional<RevisionPath> revisions;  // `_revisions`
  bool deleted = false;
  std::vector<IncomingAttachment> attachments;
  std::string body;  // "{...}"
};

/// The leaf that an edit by a client replaces: the one whose revision it names, or, if it names none, the
/// winner of a deleted document, or null for a new document. nullopt: the edit conflicts. (A deleted document
/// is created again without naming a revision, or not at all, as in CouchDB since version 3.)
std::optional<const Leaf*> edited_leaf(const RevTree& tree, const IncomingDocument& document);

/// Parses a document. `text` must be in json::compact()'s form. Throws like CouchDB: bad_request if it is not
/// an object or `_rev` is malformed, illegal_docid, doc_validation for a special member that is unknown or
/// malformed.
IncomingDocument parse_document(std::string_view text);

/// Returns illegal_docid unless `id` is valid: UTF-8, not empty, not too long, beginning with an underscore
/// only for design and local documents.
std::optional<Error> document_id_error(std::string_view id);
/// Throws document_id_error().
void check_document_id(std::string_view id);

inline bool is_design(std::string_view id) { return id.starts_with(kDesignPrefix); }

/// Parses `_revisions`, {"start": generation, "ids": [...]}, from compact JSON; throws doc_validation if it
/// is malformed.
RevisionPath parse_revisions(std::string_view json);

/// Appends {"start":...,"ids":[...]}.
void append_revisions(std::string& out, const RevisionPath& path);

/// The special members to include in a document.
struct DocumentOptions {
  bool revs = false;
  bool revs_info = false;
  bool conflicts = false;
  bool deleted_conflicts = false;
  bool local_seq = false;
};

/// Appends the JSON of a revision of a document as map functions receive it, without the closing brace.
void append_open_document(std::string& out, std::string_view id, const Revision& revision, bool deleted,
                          std::string_view body);

/// Appends `_conflicts` and `_deleted_conflicts` of a document whose winner is shown, each unless it is
/// empty.
void append_conflicts(std::string& out, const RevTree& tree);

/// Appends the JSON of a revision of a document. `tree` is used by the options that concern other leaves.
void append_document(std::string& out, std::string_view id, const Leaf& leaf, std::string_view body,
                     const RevTree& tree, const DocumentOptions& options);

}  // namespace divan::docs
