// The definition of a Mango index: the value of a view's `map` in a design document whose language is
// `query`. A document has one row, whose key is the array of its fields' values, unless a field is missing or
// the partial filter does not match.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/selector/path.h"
#include "divan/selector/selector.h"

namespace divan::index::views {

/// The `language` of the design documents of Mango's indexes.
inline constexpr std::string_view kQueryLanguage = "query";
/// Returns true if this is the language of a design document.
bool is_query(std::string_view body);

/// The maximum number of fields of an index.
inline constexpr std::size_t kMaxIndexFields = 100;

/// Immutable after parse(), hence thread-safe.
struct FieldMap {
  struct Field {
    std::string name;       // as written
    std::string direction;  // "asc" or "desc"; has no effect
    selector::Path path;
  };
  std::vector<Field> fields;
  std::string filter_json;  // `partial_filter_selector`; empty if there is none, or it is {}
  std::optional<selector::Selector> filter;

  /// Parses {"fields": {"name": "asc", ...}, "partial_filter_selector": {...}} in json::compact()'s form. An
  /// older name of the filter is `selector`. Throws invalid_index (400), or the error of the selector or of a
  /// field's name.
  static FieldMap parse(std::string_view json);

  /// The key of a document's row; nullopt if it has none. `document` is in json::compact()'s form. Throws
  /// selector_too_expensive (413).
  std::optional<std::string> key_of(std::string_view document) const;
};

}  // namespace divan::index::views
