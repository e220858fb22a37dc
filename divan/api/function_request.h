// The request object of functions of design documents
// (https://docs.couchdb.org/en/stable/json-structure.html#request-object).
#pragma once

#include <string>

#include "divan/api/call.h"
#include "divan/api/context.h"

namespace divan::api {

/// What a feed's filter receives as `req`: what identifies the client or the connection is left out, so that
/// feeds of one user with equal parameters show the same rows, and are read once.
std::string filter_request(kv::Transaction& tx, const docs::Database& database, Call& call);

/// What update, show and list functions receive as `req`. `id` is the document's; empty: null. Fields with
/// credentials are left out, as in CouchDB. `body`, if it is not empty, is a JSON value that replaces the
/// text of the body.
std::string function_request(const Context& context, kv::Transaction& tx, const docs::Database& database,
                             Call& call, const std::string& id, std::string_view body = {});

/// What a rewrite function receives: without `info`, `uuid`, `id` and `form`.
std::string rewrite_request(kv::Transaction& tx, const docs::Database& database, Call& call);

/// The state of the winning revision of a document as JSON, as functions receive it; "null" if there is none.
/// Sets `revision`, if it is not null, to the revision's text.
std::string function_document(kv::Transaction& tx, const docs::Database& database, const std::string& id,
                              std::string* revision = nullptr);

}  // namespace divan::api
