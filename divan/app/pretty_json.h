// Indented JSON.
#pragma once

#include <string>
#include <string_view>

namespace divan::app {

/// Indents a value in json::compact()'s form: one line for each member and element, two spaces for each
/// level. Names, strings and numbers are unchanged, except for characters that control a terminal (table.h).
/// Does not end with a newline.
std::string pretty_json(std::string_view compact);

}  // namespace divan::app
