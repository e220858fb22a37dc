// The documents that a full-text index finds for a query.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "divan/docs/catalog.h"
#include "divan/index/search/bookmark.h"
#include "divan/index/search/searcher.h"
#include "divan/index/search/sorting.h"
#include "divan/mango/plan.h"

namespace divan::mango {

/// The search of a query in one transaction. Not thread-safe.
class Hits {
 public:
  struct Hit {
    std::string id;         // of the document
    std::size_t match = 0;  // its index
  };

  /// `plan` must have chosen a full-text index; `condition` is that of the query. The results are those after
  /// `place`, if there is one. All must outlive this object. Throws search_too_expensive (413), and
  /// bad_request if the bookmark belongs to another query.
  Hits(kv::Transaction& tx, const docs::Database& database, const Plan& plan,
       const selector::Condition& condition, const std::optional<index::search::Bookmark>& place);

  /// The next hits, in the order of results: `count`, or all if there are fewer.
  std::vector<Hit> next(std::size_t count);
  /// Returns true if a hit matches this `$text` of the query.
  bool has_text(const Hit& hit, const selector::Condition& text) const;
  index::search::Bookmark bookmark(const Hit& hit) const;

 private:
  void find_alternatives(const selector::Condition& condition, bool is_alternative,
                         const index::search::SearchIndex& index);

  kv::Transaction& tx_;
  const index::search::SearchKeys keys_;
  index::search::Statistics statistics_;
  index::search::Searcher searcher_;
  index::search::Matches matches_;
  // What a `$text` within `$or` finds. Hits match all others, and those without words.
  std::map<const selector::Condition*, index::search::Matches> texts_;
  const index::search::Sorter sorter_;
  index::search::Sorter::Indices left_;  // sorted as far as it was read
  std::size_t next_ = 0;
};

/// Throws invalid_bookmark (400).
index::search::Bookmark decode_text_bookmark(std::string_view text);

}  // namespace divan::mango
