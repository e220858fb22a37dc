// require(): the CommonJS modules of a design document, as CouchDB has them for map functions
// (https://docs.couchdb.org/en/stable/query-server/javascript.html, "CommonJS Modules").
//
// A module is a string below `views.lib`, named by its path ("views/lib/dates"). Within a module a path that
// begins with "./" or "../" starts where the module stands. A module runs once for each global object, when
// it is first required; who requires it while it is still running (two that require each other) gets what it
// has exported so far.
#pragma once

#include <jsapi.h>

#include <string_view>

namespace divan::js::sandbox {

/// Defines require() in the current realm's global object. `lib`: views.lib as JSON. False, with an exception
/// pending, if it is no JSON or memory is short.
bool define_require(JSContext* context, std::string_view lib);

}  // namespace divan::js::sandbox
