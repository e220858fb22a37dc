// The functions that are added to the language: emit, log, sum, toJSON and isArray, as in CouchDB
// (https://docs.couchdb.org/en/stable/query-server/javascript.html), and index and
// st_index, of full-text and spatial indexes, and job, of triggers.
//
// Each program has its own global object, so that its changes to JSON, emit or Array.prototype do not affect
// others.
#pragma once

#include "divan/js/sandbox/engine.h"

namespace divan::js::sandbox {

/// A new global object with these functions; null, with an exception pending, if memory is exhausted.
JSObject* new_global(Engine& engine);

}  // namespace divan::js::sandbox
