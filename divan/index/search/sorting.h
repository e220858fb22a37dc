// The order of results.
// https://docs.couchdb.org/en/stable/api/ddoc/search.html (`sort`)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/index/search/bookmark.h"
#include "divan/index/search/searcher.h"

namespace divan::index::search {

/// What results are sorted by, such as -price<number>, name<string>, <score> or
/// <distance,lon,lat,2.35,48.85,km>. A value type.
struct SortField {
  enum class Kind : std::uint8_t { score, document, number, string, distance };
  Kind kind = Kind::score;
  bool is_descending = false;
  std::string field;  ///< of a distance: the longitude
  std::string latitude_field;
  double longitude = 0, latitude = 0;  ///< in degrees
  bool is_in_miles = false;            ///< otherwise kilometres

  /// Throws bad_request.
  static SortField parse(std::string_view text);
};

/// Sorts the matches of a search. Not thread-safe.
class Sorter {
 public:
  using Indices = std::vector<std::size_t>;  // of matches

  /// By these fields, and then by number; by the score in descending order if there are none. Throws
  /// bad_request if a field that has strings is sorted as numbers. All arguments must outlive the sorter.
  Sorter(Searcher& searcher, const Matches& matches, const std::vector<SortField>& fields);

  /// Compares matches by their indices.
  bool is_before(std::size_t a, std::size_t b) const;
  /// The matches after a bookmark, if there is one, in the order of their numbers. Throws bad_request if it
  /// belongs to another order.
  Indices after(const std::optional<Bookmark>& bookmark) const;
  /// Sorts the first `count` of `indices` that follow `first`, or all if there are fewer.
  void sort(Indices& indices, std::size_t first, std::size_t count) const;
  std::vector<SortValue> values(std::size_t match) const;

 private:
  bool is_after(std::size_t match, const Bookmark& bookmark) const;
  std::vector<SortValue> read(Searcher& searcher, const SortField& field);
  std::vector<SortValue> read_numbers(Searcher& searcher, const std::string& field);

  const Matches& matches_;
  std::vector<SortField::Kind> kinds_;  // by field
  std::vector<bool> descending_;
  std::vector<std::vector<SortValue>> values_;  // by field, then by match
};

/// The last strings that a field of the matches has: what they are grouped by.
std::vector<SortValue> read_strings(Searcher& searcher, const Matches& matches, std::string_view field);

}  // namespace divan::index::search
