// The text of settings files: CouchDB's ini dialect.
//
//   [section]
//   key = value ; a comment after white space
//     continued, because this line begins with white space and has no equals sign
//   ; a comment; one may also begin with #
//
// White space around sections, keys and values is ignored. There is no quoting or escaping, so not every
// string can be a key or a value, see can_hold(). The length of lines is not limited.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace divan::ini {

using Section = std::map<std::string, std::string>;
using Sections = std::map<std::string, Section>;

/// Throws internal_error naming the line ("line 3: not a setting") if the text is malformed or not UTF-8. If
/// a setting is repeated, its last value is used.
Sections parse(std::string_view text);

/// The text that parse() reads as `sections`. can_hold() must be true for each setting.
std::string to_text(const Sections& sections);

/// Returns true if a file can hold the setting: parse() returns it as to_text() wrote it.
bool can_hold(const std::string& section, const std::string& key, const std::string& value);

}  // namespace divan::ini
