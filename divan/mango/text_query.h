// What is read of a full-text index for a selector.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "divan/index/search/query.h"
#include "divan/index/search/text_map.h"
#include "divan/mango/sort.h"
#include "divan/selector/condition.h"

namespace divan::mango {

/// Returns true if a selector has `$text`, which only a full-text index can find.
bool has_text(const selector::Condition& condition);

struct TextQuery {
  index::search::Query query;
  /// False if documents are only found by the types that they have in some fields. It may be faster to read
  /// all documents.
  bool is_selective = true;
};

/// A query that finds all documents that match a selector, and perhaps others: an index does not know the
/// order of strings, for example. Only `$text` has scores. nullopt if the index may lack a document that
/// matches, as one without a field that the selector does not require; or if it has no words for `$text`.
std::optional<TextQuery> text_query(const selector::Condition& condition, const index::search::TextMap& map,
                                    const text::Analyzer& analyzer);

/// The maximum number of fields by which the results of a full-text index are sorted: the values of all
/// documents are read for each.
inline constexpr std::size_t kMaxTextSortFields = 20;

/// Returns false if an index has no values of a field by which results are sorted.
bool has_sort_fields(const Sort& sort, const selector::Condition& condition,
                     const index::search::TextMap& map);
/// The fields of an index by which results are sorted, as parameters of a search (SortField::parse()). The
/// type of a field is at the end of its name, as in `age:number`, or that of the values with which the
/// selector compares it. Throws text_sort_error (400) if it is neither, or if there are too many fields.
std::vector<std::string> text_sort(const Sort& sort, const selector::Condition& condition);

}  // namespace divan::mango
