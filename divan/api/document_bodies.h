// Documents in the bodies of requests and responses: as JSON, or with their attachments after them, as
// multipart/related (https://docs.couchdb.org/en/stable/api/document/common.html#attachments, RFC 2387).
#pragma once

#include "divan/api/call.h"
#include "divan/api/content_pages.h"
#include "divan/api/context.h"
#include "divan/docs/document.h"

namespace divan::api {

/// Reads the document of a PUT, which has this id. If attachments follow it, they are received after
/// check_before_upload(). Throws as that, docs::parse_document() and AttachmentReceiver, and bad_request if
/// what follows are not its attachments.
Async<docs::IncomingDocument> document_of(const Context& context, Call& call, std::string id);

/// Returns true if an Accept field names this type. `*/*` does not name any: clients that did not ask for
/// other forms get JSON.
bool accepts(const Call& call, std::string_view type);

/// The Content-Type of a part that has an error instead of a document, as in CouchDB.
inline constexpr std::string_view kErrorPart = R"(application/json; error="true")";

/// Appends the JSON of a document with this body.
using AppendJson = std::function<void(std::string& out, std::string_view body)>;
/// Appends a document to `out`, followed by its attachments, except those that were attached up to the
/// generation `known`; if none follow, the JSON only. Returns the Content-Type of what was appended.
/// `boundary` as for http::MultipartWriter. Large contents are left to `placeholders`.
std::string append_with_attachments(kv::Transaction& tx, const docs::Database& database,
                                    std::string_view body, const AppendJson& append, std::uint32_t known,
                                    const std::string& boundary, ContentPlaceholders& placeholders,
                                    std::string& out);

}  // namespace divan::api
