// `divan search`: the documents that a full-text index finds.
#pragma once

#include <cstdint>
#include <string>

#include "divan/app/command_line.h"

namespace divan::app {

struct SearchOptions {
  QueryOptions query;
  std::string database;
  std::string index;  // "DESIGN/INDEX"
  std::string text;   // the search, in Lucene's syntax
  std::string sort;   // a sort field or JSON; empty: by score
  std::uint64_t limit = 10;
};

/// Throws bad_request if `index` is malformed, and the server's errors.
void show_search(const SearchOptions& options);

}  // namespace divan::app
