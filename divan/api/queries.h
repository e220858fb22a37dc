// Several queries of a listing or a view in one request: POST .../queries
// (https://docs.couchdb.org/en/stable/api/ddoc/views.html#sending-multiple-queries-to-a-view).
#pragma once

#include "divan/api/page_stream.h"
#include "divan/docs/reader.h"
#include "divan/index/views/params.h"

namespace divan::api {

/// Returns true if the path ends with /queries after `depth` segments.
bool is_multi_query(const Call& call, std::size_t depth);

/// The parameters of each query: those of the URL except `keys`, `group` and `group_level`, overridden by
/// those in the body's `queries`. A single one of `keys` is a range. Throws bad_request.
std::vector<index::views::ViewParams> parse_queries(Call& call);

/// The parameters of a single query, from the URL and a POST's body. Throws bad_request.
index::views::ViewParams parse_query_params(Call& call);

/// The document id that a key of a listing names; empty, which matches no document, if the key is not a
/// string.
std::string id_of_key(const std::string& key);

/// The range of ids in a listing's parameters. `startkey_docid` and `endkey_docid` replace keys that are not
/// given, as in CouchDB.
docs::DocumentRange document_range(const index::views::ViewParams& params);

/// {"results": [...]} with the results of each source in order.
std::unique_ptr<PageSource> multi_query_pages(std::vector<std::unique_ptr<PageSource>> sources);

}  // namespace divan::api
