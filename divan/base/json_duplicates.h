// Members of JSON objects that have one name.
//
// RFC 8259 leaves open what they mean. Here, as in JavaScript and in CouchDB, the last one stands.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace divan::json {

/// The same JSON where, of the members of an object that have one name, only the last one is left; nullopt if
/// no object has such members. Names are compared without their escapes. `text` is in compact()'s form.
std::optional<std::string> without_duplicates(std::string_view text);

}  // namespace divan::json
