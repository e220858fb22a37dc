// Shows where a text matches a query.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "divan/index/search/query.h"
#include "divan/index/search/term_matcher.h"
#include "divan/text/analyzer.h"

namespace divan::index::search {

/// What highlights look like. A value type.
struct HighlightStyle {
  std::string before, after;  ///< a word that matches
  std::size_t fragments = 1;  ///< at most
  std::size_t size = 100;     ///< approximate length of a fragment, in characters
};

/// Immutable, hence thread-safe.
class Highlighter {
 public:
  /// Words match that occur in `query`, in any field, except in clauses that must not match; words of a
  /// phrase match wherever they are.
  Highlighter(const Query& query, HighlightStyle style);

  /// The fragments of a text in which the most different words match, the best first. The text is not
  /// escaped.
  std::vector<std::string> fragments(const text::Analyzer& analyzer, std::string_view text) const;

  /// About how long fragments() takes for a text, as a multiple of reading an entry of the index.
  std::uint64_t cost(std::string_view text) const;

 private:
  void add(const Query& query);
  bool matches(const std::string& term) const;

  const HighlightStyle style_;
  std::set<std::string> terms_;
  std::vector<TermMatcher> matchers_;
};

}  // namespace divan::index::search
