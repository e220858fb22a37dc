// The text of settings files: CouchDB's ini dialect.
//
//   [section]
//   key = value ; a comment after white space
//     goes on, because this line begins with white space and has no equals sign
//   ; a comment, as is what begins with #
//
// White space around sections, keys and values does not count. Nothing is quoted or escaped, so not every
// text can be a key or a value: can_hold(). Lines are as long as they like.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace divan::ini {

using Section = std::map<std::string, std::string>;
using Sections = std::map<std::string, Section>;

/// Throws internal_error naming the line ("line 3: not a setting") if the text is malformed or not UTF-8. Of
/// a setting that is repeated the last value counts.
Sections parse(std::string_view text);

/// What parse() reads as `sections`, if every setting of them can_hold().
std::string to_text(const Sections& sections);

/// Whether a file can hold the setting: whether parse() gives back what to_text() wrote.
bool can_hold(const std::string& section, const std::string& key, const std::string& value);

}  // namespace divan::ini
