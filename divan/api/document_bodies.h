// Documents in the bodies of requests and responses: as JSON, or with their attachments after them, as
// multipart/related (https://docs.couchdb.org/en/stable/api/document/common.html#attachments, RFC 2387).
#pragma once

#include "divan/api/call.h"
#include "divan/api/content_pages.h"
#include "divan/api/context.h"
#include "divan/docs/document.h"

namespace divan::api {

/// Reads the document of a PUT. If attachments follow it, they are received after `check` has been called
/// with the document. Throws as docs::parse_document() and AttachmentReceiver do, and bad_request if what
/// follows are not its attachments.
using DocumentCheck = std::function<void(docs::IncomingDocument& document)>;
Async<docs::IncomingDocument> document_of(const Context& context, Call& call, const DocumentCheck& check);

/// Returns true if an Accept field names this type. `*/*` does not name any: clients that did not ask for
/// other forms get JSON.
bool accepts(const Call& call, std::string_view type);

/// Appends the JSON of a document with this body.
using AppendJson = std::function<void(std::string& out, std::string_view body)>;
/// Appends a document to `out`, followed by its attachments, except those that were attached up to the
/// generation `known`; if none follow, the JSON only. Returns the Content-Type of what was appended.
/// `boundary` as for http::MultipartWriter. Large contents are marked in `response`, which `out` is to
/// become.
std::string append_with_attachments(kv::Transaction& tx, const docs::Database& database,
                                    std::string_view body, const AppendJson& append, std::uint32_t known,
                                    const std::string& boundary, MarkedResponse& response, std::string& out);

}  // namespace divan::api
