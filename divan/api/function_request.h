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

/// What an update function receives as `req`. `id` is the document's; empty: null. Fields with credentials
/// are left out, as in CouchDB.
std::string update_request(const Context& context, kv::Transaction& tx, const docs::Database& database,
                           Call& call, const std::string& id);

}  // namespace divan::api
