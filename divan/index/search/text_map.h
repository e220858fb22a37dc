// The definition of a text index of Mango: `index` of a member of `indexes` in a design document whose
// language is `query`. https://docs.couchdb.org/en/stable/api/database/find.html#db-index
//
// Each value of a document is in a field with the name of its path and type, as in CouchDB: `a.b:string`, or
// `tags.[]:string` for the elements of an array, with all but letters and digits escaped. Two fields are
// about the document: `$default` has the words of all strings, and `$fieldnames` the names of the fields of
// all values, also of those types that have no field, such as `a:null` and `a:object`. So an index can tell
// which documents have a field, whatever its type.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "divan/index/search/field.h"
#include "divan/selector/path.h"
#include "divan/selector/selector.h"
#include "divan/text/analyzer.h"

namespace divan::index::search {

inline constexpr std::string_view kDefaultTextField = "$default";
inline constexpr std::string_view kFieldNames = "$fieldnames";
/// The name for an element of an array, in paths.
inline constexpr std::string_view kElement = "[]";

/// The maximum number of fields that a definition lists.
inline constexpr std::size_t kMaxTextFields = 1'000;

/// Immutable after parse(), hence thread-safe.
struct TextMap {
  struct IndexedField {
    std::string name;  ///< as written: "a.b"
    std::string type;  ///< string, number or boolean
  };
  std::vector<IndexedField> fields;  ///< empty: all
  std::string json;                  ///< the definition
  std::string filter_json;           ///< `partial_filter_selector`; empty if there is none, or it is {}
  std::optional<selector::Selector> filter;
  bool has_default_field = true;
  bool has_array_lengths = true;  ///< numbers of elements are in fields: `a.[]:length`
  std::string analyzer;           ///< JSON: the analyzer that the definition asks for

  /// Parses a definition in json::compact()'s form. An older name of the filter is `selector`. Throws
  /// invalid_index (400), or the error of the selector or of a field's name.
  static TextMap parse(std::string_view json);

  /// Returns true if values of this type at a path (text_path()) have a field.
  bool has_field(std::string_view path, std::string_view type) const;
  /// Returns true if `$fieldnames` has the types of the values at a path.
  bool has_types(std::string_view path) const;

  /// Visits the fields of a document, in json::compact()'s form; none if the filter does not match. Throws
  /// selector_too_expensive (413) before the first one.
  void visit_fields(std::string_view document, const text::Analyzer& analyzer,
                    const std::function<void(const Field&)>& visit) const;

 private:
  std::set<std::string, std::less<>> names_;  // of the fields
  std::set<std::string, std::less<>> paths_;  // theirs
};

/// A path as it is in the names of fields: escaped.
std::string text_path(const selector::Path& path);
/// The name of the field of the values of a type; or, with the type `length` and the path of the elements, of
/// the numbers of elements of arrays. With an empty type, what the names of all types begin with.
std::string text_field(std::string_view path, std::string_view type);

/// Returns true if the terms of a field are whole strings (text_term()), so that an index can tell which
/// documents have a string.
bool has_whole_strings(const text::Analyzer& analyzer, std::string_view field);
/// The term of a whole string, or what the terms of strings with this prefix begin with: of a long one, the
/// beginning.
std::string_view text_term(std::string_view string);

/// The term of a number.
std::string number_term(double number);
/// The finite number that is nearest to a number in JSON.
double text_number(std::string_view json);

}  // namespace divan::index::search
