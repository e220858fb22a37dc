// The parts of CouchDB 3.5's HTTP API that Divan does not support yet, in one table.
#pragma once

#include "divan/api/call.h"

namespace divan::api {

/// The position of a name in a path.
enum class Level {
  server,           // /{name}
  node,             // /_node/{node}/{name}
  database,         // /{db}/{name}
  design_document,  // /{db}/_design/{design document}/{name}
};

/// An entry of the table.
struct Unsupported {
  Level level;
  std::string_view name;
  std::string_view methods;  // that CouchDB supports here, in the form of Call::allow()
  std::string_view feature;
};

/// Returns the entry of a name; null if CouchDB 3.5 does not have it, or Divan supports it.
const Unsupported* find_unsupported(Level level, std::string_view name);

/// Throws MethodNotAllowed (405) if CouchDB does not support the request's method here either, otherwise
/// not_implemented (501) with the entry's name and feature.
[[noreturn]] void reject_unsupported(const Call& call, const Unsupported& entry);

/// Throws not_implemented (501) for a feature without a path of its own, such as a method.
[[noreturn]] void throw_not_implemented(const std::string& reason);

}  // namespace divan::api
