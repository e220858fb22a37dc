// The terms of an index that match a prefix, a wildcard, a regular expression, a range, or a word
// approximately.
#pragma once

#include <re2/re2.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/index/search/query.h"

namespace divan::index::search {

/// Decides which terms match. Immutable, hence thread-safe.
class TermMatcher {
 public:
  /// Of a query of the kinds prefix, wildcard, regex, fuzzy or text_range. Throws bad_request if an
  /// expression is invalid.
  explicit TermMatcher(const Query& query);

  /// All terms that match are at least `begin()` and, unless it is empty, below `end()`, in the order of
  /// their bytes.
  const std::string& begin() const { return begin_; }
  const std::string& end() const { return end_; }

  /// How similar a term is, from 0 (exclusive) to 1, which all matching terms are unless the query is fuzzy;
  /// nullopt if it does not match.
  std::optional<double> match(std::string_view term) const;

  /// About how long it takes to match the term, as a multiple of reading an entry.
  std::uint64_t cost(std::string_view term) const;

 private:
  std::optional<double> match_fuzzy(std::string_view term) const;

  const Query::Kind kind_;
  const std::string text_;
  const bool with_lower_, with_upper_;
  const std::string lower_, upper_;
  const bool has_upper_;
  const std::size_t edits_;
  std::u32string characters_;              // of a fuzzy query's text
  std::shared_ptr<const re2::RE2> regex_;  // null for other kinds
  std::string begin_, end_;
};

/// The most bytes of a wildcard's or an expression's text.
inline constexpr std::size_t kMaxPatternBytes = 1'000;

/// Why a regular expression is invalid; empty if it is valid. The syntax is Lucene's; expressions match whole
/// terms: . ? * + {n,m} | ( ) [ ] [^ ] @ (any text) "literal text" and \ before a character that is meant
/// literally. Lucene's operators ~ & # < > are not supported.
/// https://lucene.apache.org/core/4_6_0/core/org/apache/lucene/util/automaton/RegExp.html
std::string problem_of_regex(std::string_view expression);

}  // namespace divan::index::search
