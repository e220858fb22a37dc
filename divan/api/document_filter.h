// Filters of feeds that test documents: selectors, functions of design documents, and map functions
// (https://docs.couchdb.org/en/stable/api/database/changes.html#filtering).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "divan/api/call.h"
#include "divan/api/context.h"

namespace divan::api {

/// Immutable, hence thread-safe.
class DocumentFilter {
 public:
  virtual ~DocumentFilter() = default;

  /// Filters with equal keys select the same documents.
  virtual const std::string& key() const = 0;

  /// Returns true if select() must be called on Context::function_threads.
  virtual bool calls_functions() const = 0;

  /// Returns whether the feed shows each of these documents (JSON): of the first ones, at least of one, if it
  /// takes long. Throws the error with which the feed ends.
  virtual std::vector<bool> select(std::span<const std::string> documents) const = 0;
};

using DocumentFilterPtr = std::shared_ptr<const DocumentFilter>;

/// The filter of a request to `_changes`, as CouchDB names it: `_selector`, `_view`, or `design/function`;
/// null if it has none, or one that needs no documents (`_doc_ids`, `_design`). Throws bad_request, and
/// not_found if the function does not exist.
DocumentFilterPtr document_filter(const Context& context, kv::Transaction& tx, const docs::Database& database,
                                  Call& call);

}  // namespace divan::api
