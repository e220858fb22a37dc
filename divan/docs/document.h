// Documents as JSON: what clients send taken apart, and what they get put together.
//
// Between the two a document is its id, its revision and its body: the JSON object without the members whose
// names begin with an underscore (except what a replicator notes, `_replication_state` and the like), as the
// text that the client sent (order of members and spelling of numbers are kept; white space between tokens is
// not; of members of one name the last one stands).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/error.h"
#include "divan/docs/rev_tree.h"
#include "divan/kv/chunks.h"

namespace divan::docs {

/// The largest document, in bytes of JSON: it has to fit into a transaction. A smaller limit can be set
/// (Catalog::set_max_document_bytes).
inline constexpr std::size_t kMaxDocumentBytes = 8'000'000;
/// How many rows a body of so many bytes takes in the store: {} takes none.
constexpr std::uint32_t body_chunks(std::size_t bytes) { return bytes <= 2 ? 0 : kv::chunk_count(bytes); }
inline constexpr std::uint32_t kMaxBodyChunks = body_chunks(kMaxDocumentBytes);
/// The longest document id, in bytes (zero bytes count twice): it must fit into keys beside an index's key.
inline constexpr std::size_t kMaxDocumentIdBytes = 4000;
/// Ancestors that a client may name in `_revisions`.
inline constexpr std::size_t kMaxRevisionsGiven = 10'000;

inline constexpr std::string_view kDesignPrefix = "_design/";
inline constexpr std::string_view kLocalPrefix = "_local/";

/// A document that a client sent.
struct IncomingDocument {
  std::string id;                         // empty: none was given
  std::optional<Revision> revision;       // the first one of `_revisions`, or `_rev`
  std::optional<RevisionPath> revisions;  // `_revisions`
  bool deleted = false;
  bool attachments = false;  // it has some, which refuse_attachments() refuses
  std::string body;          // "{...}"
};

/// Throws not_implemented (501) if the document has attachments, be they data or stubs.
void refuse_attachments(const IncomingDocument& document);

/// Takes a document apart. `text` is in json::compact()'s form. Throws what CouchDB answers: bad_request if
/// it is no object or `_rev` is malformed, illegal_docid, doc_validation for a special member that does not
/// exist or is malformed.
IncomingDocument parse_document(std::string_view text);

/// Returns illegal_docid unless `id` may name a document: UTF-8, not empty, not too long, beginning with an
/// underscore only for design and local documents.
std::optional<Error> document_id_error(std::string_view id);
/// Throws it.
void check_document_id(std::string_view id);

inline bool is_design(std::string_view id) { return id.starts_with(kDesignPrefix); }

/// Reads `_revisions`, {"start": generation, "ids": [...]}, from compact JSON; throws doc_validation if
/// malformed.
RevisionPath parse_revisions(std::string_view json);

/// Appends {"start":...,"ids":[...]}.
void append_revisions(std::string& out, const RevisionPath& path);

/// Which special members a reader wants.
struct DocumentOptions {
  bool revs = false;
  bool revs_info = false;
  bool conflicts = false;
  bool deleted_conflicts = false;
  bool local_seq = false;
};

/// Appends the JSON of a revision of a document as map functions get it, but for the closing brace.
void append_open_document(std::string& out, std::string_view id, const Revision& revision, bool deleted,
                          std::string_view body);

/// Appends `_conflicts` and `_deleted_conflicts` of a document whose winner is shown, each if there are any.
void append_conflicts(std::string& out, const RevTree& tree);

/// Appends the JSON of a revision of a document. `tree` is needed for the options that speak of other leaves.
void append_document(std::string& out, std::string_view id, const Leaf& leaf, std::string_view body,
                     const RevTree& tree, const DocumentOptions& options);

}  // namespace divan::docs
