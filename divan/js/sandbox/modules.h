// require(): the CommonJS modules of a design document, as in CouchDB's map functions
// (https://docs.couchdb.org/en/stable/query-server/javascript.html, "CommonJS Modules").
//
// A module is a string below `views.lib`, named by its path ("views/lib/dates"). Within a module a path that
// begins with "./" or "../" is relative to the module. A module runs once per global object, when it is first
// required. If it is required while it is still running (two modules that require each other), its partial
// exports are returned.
#pragma once

#include <jsapi.h>

#include <string_view>

namespace divan::js::sandbox {

/// Defines require() in the current realm's global object. `lib` is views.lib as JSON. Returns false, with an
/// exception pending, if it is invalid JSON or memory is exhausted.
bool define_require(JSContext* context, std::string_view lib);

}  // namespace divan::js::sandbox
