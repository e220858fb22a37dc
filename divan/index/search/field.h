// What index functions make of a document.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "divan/js/result.h"

namespace divan::index::search {

/// A field that a document has in an index, as `index(name, value, options)` in CouchDB's index functions.
/// https://docs.couchdb.org/en/stable/ddocs/search.html#index-functions
struct Field {
  std::string name;
  std::string json;  ///< of the value: a string, a number or a boolean
  bool is_stored = false;
  bool is_indexed = true;   ///< of a string or boolean
  bool is_analyzed = true;  ///< otherwise the value is one term
  bool is_facet = false;    ///< of a string or boolean
  bool has_values = true;   ///< of a string or boolean: results can be sorted by it
  float boost = 1;
};

/// The fields of what a function emitted: each `index(name, value, options)` emits these three as an object.
/// Calls `refuse`, with a reason, for what is no field.
std::vector<Field> fields_of(std::span<const js::Emitted> emitted,
                             const std::function<void(std::string_view reason)>& refuse);

}  // namespace divan::index::search
