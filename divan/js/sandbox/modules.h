// require(): the CommonJS modules of a design document, as in CouchDB's map functions
// (https://docs.couchdb.org/en/stable/query-server/javascript.html, "CommonJS Modules").
//
// A module is a string in the design document, named by its path ("views/lib/dates"). Within a module a path
// that begins with "./" or "../" is relative to the module. A module runs once per global object, when it is
// first required. If it is required while it is still running (two modules that require each other), its
// partial exports are returned.
#pragma once

#include <jsapi.h>

#include <string_view>

namespace divan::js::sandbox {

/// Defines require() in the current realm's global object, which finds modules in the object `json`; sets
/// `root` to this object, frozen. Returns false, with an exception pending, if it is invalid JSON or memory
/// is exhausted.
bool define_require(JSContext* context, std::string_view json, JS::MutableHandleValue root);

}  // namespace divan::js::sandbox
