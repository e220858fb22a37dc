// Where in the results of a search a page begins.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "divan/base/json.h"
#include "divan/index/search/rows.h"

namespace divan::index::search {

/// The value of a result by which it is sorted; documents without one come first, or last in descending
/// order.
using SortValue = std::variant<std::monostate, double, std::string>;

void write(json::Writer& writer, const SortValue& value);

/// The last result of the previous page. A value type.
struct Bookmark {
  std::vector<double> statistics;  ///< of the first page (searcher.h)
  std::vector<SortValue> values;   ///< of the result; empty: at the beginning
  DocumentNumber number = 0;       ///< of the result

  std::string encode() const;
  /// Throws bad_request unless the text was encoded by encode().
  static Bookmark decode(std::string_view text);
};

}  // namespace divan::index::search
