// The analyzers by name.
#pragma once

#include <string_view>
#include <vector>

#include "divan/text/filters.h"

namespace divan::text {

/// An analyzer of CouchDB's list: that of a language, or a general one.
struct Language {
  std::string_view name;
  Filters filters;
  std::string_view words;      ///< stop words; a space follows each
  bool has_stop_words = true;  ///< its stop words can be replaced
};

/// Null if there is none of this name.
const Language* find_language(std::string_view name);

/// All names.
std::vector<std::string_view> language_names();

}  // namespace divan::text
