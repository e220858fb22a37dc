// What a design document must look like for CouchDB to take it.
#pragma once

#include <string_view>

namespace divan::docs {

/// Throws invalid_design_doc (400), in CouchDB's words, if a member of the body of a design document, an
/// object in json::compact()'s form, has not the type that it must have. What its functions say is checked
/// elsewhere.
void check_design_members(std::string_view body);

/// Throws not_implemented (501) if the design document has a function that Divan would never call although it
/// is there to protect data: `validate_doc_update`.
void refuse_validation(std::string_view id, std::string_view body);

}  // namespace divan::docs
