// Searches of a full-text index, and their responses as CouchDB's.
// https://docs.couchdb.org/en/stable/api/ddoc/search.html
#pragma once

#include <string>

#include "divan/index/search/params.h"
#include "divan/index/search/search_index.h"

namespace divan::index::search {

/// A search that was parsed. Immutable, hence thread-safe.
class Search {
 public:
  /// Throws bad_request or query_parse_error (400) if the query or a parameter is invalid.
  Search(std::shared_ptr<const SearchIndex> index, SearchParams params);

  /// The response, a JSON object: the results as the transaction reads them. Throws not_found if the index
  /// was removed since it had the sequence `known`; search_too_expensive and response_too_large (413); and
  /// bad_request.
  std::string run(kv::Transaction& tx, const docs::Database& database,
                  const kv::Versionstamp& known = {}) const;

 private:
  class Run;
  struct Range {
    std::string field;
    std::vector<std::pair<std::string, Query>> queries;  // by label; ranges of numbers
  };

  const std::shared_ptr<const SearchIndex> index_;
  const SearchParams params_;
  const Query query_;
  std::vector<Range> ranges_;
};

}  // namespace divan::index::search
