// Removes duplicate members of JSON objects.
//
// RFC 8259 does not define the meaning of several members of one name. Here, as in JavaScript and CouchDB,
// the last one is used.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace divan::json {

/// Returns `text` without each member that a later member of the same object and name replaces; nullopt if
/// there are none. Names are compared after decoding. `text` must be in compact()'s form.
std::optional<std::string> without_duplicates(std::string_view text);

}  // namespace divan::json
