// The parameters of a full-text search.
// https://docs.couchdb.org/en/stable/api/ddoc/search.html
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "divan/index/search/bookmark.h"
#include "divan/index/search/sorting.h"
#include "divan/index/views/params.h"

namespace divan::index::search {

inline constexpr std::uint64_t kDefaultLimit = 25;
inline constexpr std::uint64_t kMaxLimit = 200;
/// In a partitioned database, without `limit` and at most.
inline constexpr std::uint64_t kPartitionedLimit = 2'000;
inline constexpr std::uint64_t kDefaultGroups = 10;
inline constexpr std::uint64_t kMaxGroups = 200;
/// Fragments of a field, and characters of a fragment, in highlights.
inline constexpr std::uint64_t kMaxHighlights = 100;
inline constexpr std::uint64_t kMaxHighlightSize = 10'000;
/// The maximum number of elements of a list, such as sort fields; and of fields to include, values of a
/// drilldown, and ranges of a field.
inline constexpr std::size_t kMaxFieldsOfAList = 20;
inline constexpr std::size_t kMaxValuesOfAList = 1'000;

struct SearchParams {
  std::string query;
  std::optional<std::string> partition;
  std::optional<std::uint64_t> limit;  ///< of rows, or of each group's rows
  std::optional<Bookmark> bookmark;
  std::vector<SortField> sort;  ///< empty: by relevance
  bool include_docs = false;
  std::optional<std::vector<std::string>> include_fields;
  views::Update update = views::Update::wait;

  // Facets.
  std::vector<std::string> counts;
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, std::string>>>> ranges;
  std::vector<std::vector<std::string>> drilldown;  ///< each a field and values, one of which it must have

  // Groups.
  std::optional<std::string> group_field;
  bool has_old_group_names = false;  ///< requested as `group_by`
  std::uint64_t group_limit = kDefaultGroups;
  std::vector<SortField> group_sort;

  // Highlights.
  std::vector<std::string> highlight_fields;
  std::string highlight_pre_tag = "<em>";
  std::string highlight_post_tag = "</em>";
  std::uint64_t highlight_number = 1;
  std::uint64_t highlight_size = 0;  ///< in characters; 0: 100
};

/// Parameters by name, their values as JSON in json::compact()'s form.
using SearchParamTexts = std::vector<std::pair<std::string, std::string>>;

/// Converts the parameters of a URL: those that are texts, and those that are JSON.
SearchParamTexts params_of_url(const std::vector<std::pair<std::string, std::string>>& params);
/// The members of a request's body, an object. Throws bad_request.
SearchParamTexts params_of_body(std::string_view json);

/// Throws query_parse_error or bad_request (400). Ignores unknown names, as CouchDB.
SearchParams parse_params(const SearchParamTexts& texts);

}  // namespace divan::index::search
