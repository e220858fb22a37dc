// JSON laid out for people.
#pragma once

#include <string>
#include <string_view>

namespace divan::app {

/// A value in json::compact()'s form with a line for each member and element, two spaces deeper each; names,
/// strings and numbers stay as they are written, but for what a terminal would act on (table.h). No line end
/// at the end.
std::string pretty_json(std::string_view compact);

}  // namespace divan::app
