// Validation of design documents, as in CouchDB.
#pragma once

#include <string_view>

namespace divan::docs {

/// Throws invalid_design_doc (400), in CouchDB's words, if a member of a design document's body, an object in
/// json::compact()'s form, has the wrong type. Does not check the source of functions.
void check_design_members(std::string_view body);

/// Throws not_implemented (501) if the design document has `validate_doc_update`: Divan does not run it, so
/// the data that it protects would be written unchecked.
void reject_validation(std::string_view id, std::string_view body);

}  // namespace divan::docs
