// Full-text queries as trees, which query_parser.h makes of Lucene's syntax.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace divan::index::search {

struct Clause;

/// A query, or a part of one. A value type.
struct Query {
  enum class Kind : std::uint8_t {
    all,           ///< all documents of the index
    none,          ///< nothing; as a clause, it is ignored
    term,          ///< `text`
    phrase,        ///< `terms`, at their positions
    prefix,        ///< terms that begin with `text`
    wildcard,      ///< `text`: * is any text, ? one character; \ makes a character ordinary
    regex,         ///< `text`, a regular expression (term_matcher.h)
    fuzzy,         ///< terms that differ from `text` by at most `edits`
    text_range,    ///< terms from `lower` to `upper`
    number_range,  ///< numbers from `least` to `greatest`
    boolean,       ///< `clauses`
  };
  Kind kind = Kind::none;
  std::string field;
  double boost = 1;  ///< factor of the score, from 0 to kMaxBoost

  std::string text;

  /// Of a phrase: terms with their positions, which do not decrease; terms at the same position are
  /// alternatives.
  std::vector<std::pair<std::string, std::uint32_t>> terms;
  std::uint32_t slop = 0;  ///< by how many positions the terms may be moved, in total
  int edits = 2;           ///< 0 to 2

  std::string lower, upper;
  bool has_lower = false, has_upper = false;  ///< of a range of text
  double least = 0, greatest = 0;             ///< of a range of numbers; may be infinite
  bool with_lower = true, with_upper = true;  ///< whether the bounds belong to the range

  std::vector<Clause> clauses;
};

/// Whether documents must match a part of a query.
enum class Occur : std::uint8_t {
  must,
  should,  ///< if no clause must match, one of these must; a match adds to the score
  must_not,
};

/// Returns true if a number is in the range of a query of the kind number_range.
inline bool is_in_range(const Query& range, double number) {
  return (range.with_lower ? number >= range.least : number > range.least) &&
         (range.with_upper ? number <= range.greatest : number < range.greatest);
}

/// A value type.
struct Clause {
  Occur occur = Occur::should;
  Query query;
};

/// The documents of a partition that match. Scores are the same.
Query in_partition(Query query, std::string partition);

/// A query in Lucene's syntax (query_parser.h), to show it.
std::string to_lucene(const Query& query);

/// Limits of a query.
inline constexpr int kMaxQueryDepth = 100;              ///< parentheses in parentheses
inline constexpr std::size_t kMaxQueryClauses = 4'096;  ///< in total
inline constexpr std::size_t kMaxQueryBytes = 1 << 20;
inline constexpr std::uint32_t kMaxSlop = 10'000;
inline constexpr double kMaxBoost = 1e9;  ///< so that scores are finite

}  // namespace divan::index::search
