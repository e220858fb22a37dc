// Fields of documents: "a.b" is the member b of the object a, "a.0" the first element of the array a.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace divan::selector {

/// The names on the way to a field.
using Path = std::vector<std::string>;
/// The maximum number of names.
inline constexpr std::size_t kMaxPathNames = 100;

/// Parses a field. As in CouchDB, a dot after a backslash does not separate names, and backslashes are
/// removed. Throws invalid_field_name (400) if a name is empty, or there are too many.
Path parse_path(std::string_view field);
/// Throws invalid_field_name if there are too many names.
void check_length(const Path& path);

/// The field with backslashes before dots within names; parse_path() returns the path.
std::string to_field(const Path& path);

/// The result of step_into().
enum class Step {
  found,
  no_member,  // an object without the member
  no_path     // neither an object nor an array with such an element
};

/// Replaces `value`, which must be in json::compact()'s form, with its member or element of this name.
Step step_into(std::string_view& value, std::string_view name);

/// The value of a field; nullopt if it is missing. `document` must be in json::compact()'s form.
std::optional<std::string_view> find_field(const Path& path, std::string_view document);

}  // namespace divan::selector
