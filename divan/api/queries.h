// Several queries of a listing or a view in one request: POST .../queries
// (https://docs.couchdb.org/en/stable/api/ddoc/views.html#sending-multiple-queries-to-a-view).
#pragma once

#include "divan/api/page_stream.h"
#include "divan/docs/reader.h"
#include "divan/index/views/params.h"

namespace divan::api {

/// Whether the path ends with /queries, `depth` segments being before it.
bool asks_several(const Call& call, std::size_t depth);

/// The parameters of each query: those of the URL but `keys`, `group` and `group_level`, changed by those in
/// the body's `queries`. A single one of `keys` is a range. Throws bad_request.
std::vector<index::views::ViewParams> parse_queries(Call& call);

/// The parameters of a single query, of the URL and of a POST's body. Throws bad_request.
index::views::ViewParams parse_query_params(Call& call);

/// The document id that a key of a listing stands for, its id; empty for a key that is no string, which
/// finds nothing.
std::string id_of_key(const std::string& key);

/// The range of ids that a listing's parameters ask for. `startkey_docid` and `endkey_docid` stand in for
/// keys that are not given, as in CouchDB.
docs::DocumentRange document_range(const index::views::ViewParams& params);

/// {"results": [...]} with the answer of each source in its turn.
std::unique_ptr<PageSource> several_pages(std::vector<std::unique_ptr<PageSource>> sources);

}  // namespace divan::api
