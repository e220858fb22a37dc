// Validation of design documents, as in CouchDB.
#pragma once

#include <string_view>

namespace divan::docs {

/// Throws invalid_design_doc (400), in CouchDB's words, if a member of a design document's body, an object in
/// json::compact()'s form, has the wrong type. Does not check the source of functions.
void check_design_members(std::string_view body);

/// Throws invalid_design_doc (400) if the views of a design document of a database that is not partitioned
/// are to be.
void check_is_not_partitioned(std::string_view body);

/// Throws not_implemented (501) if the design document has `validate_doc_update` that is not a JavaScript
/// function: Divan would not run it, and write the data that it protects unchecked.
void check_validation_language(std::string_view id, std::string_view body);

}  // namespace divan::docs
