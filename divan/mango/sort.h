// Lists of fields with a direction: the order of results, and the fields of an index.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "divan/index/views/field_map.h"
#include "divan/selector/path.h"

namespace divan::mango {

/// The maximum number of fields.
inline constexpr std::size_t kMaxSortFields = index::views::kMaxIndexFields;

/// Fields in the order of significance, all in one direction. A value type.
struct Sort {
  struct Field {
    std::string name;  // as written
    selector::Path path;
  };
  std::vector<Field> fields;
  bool descending = false;

  /// Parses ["a", ...] or [{"a": "asc"}, ...], in json::compact()'s form. Throws CouchDB's errors (400):
  /// invalid_sort_json (also for too many fields), invalid_sort_field, unsupported_mixed_sort,
  /// invalid_field_name.
  static Sort parse(std::string_view json);

  std::string_view direction() const { return descending ? "desc" : "asc"; }
  std::vector<selector::Path> paths() const;
};

}  // namespace divan::mango
