// Functions of design documents as programs. A program has one function; its modules, and its `this`, are the
// whole design document (https://docs.couchdb.org/en/stable/ddocs/ddocs.html).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "divan/docs/catalog.h"
#include "divan/js/program.h"

namespace divan::functions {

/// The function at `path` ("validate_doc_update", or "filters" and its name) of a design document with this
/// body. `owner` is the design document's. Throws not_found (404), in CouchDB's words, if it does not exist,
/// and unknown_query_language (500) unless the language is JavaScript.
js::Program design_function(const js::Owner& owner, std::string_view body, std::span<const std::string> path);

/// The owner of the functions of a design document.
js::Owner owner_of(const docs::Database& database, std::string_view design_id);

}  // namespace divan::functions
