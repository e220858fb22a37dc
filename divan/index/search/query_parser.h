// Parses Lucene's query syntax, as CouchDB's search accepts it.
// https://docs.couchdb.org/en/stable/ddocs/search.html#query-syntax
// https://lucene.apache.org/core/4_6_0/queryparser/org/apache/lucene/queryparser/classic/package-summary.html
#pragma once

#include <string_view>

#include "divan/index/search/query.h"
#include "divan/text/analyzer.h"

namespace divan::index::search {

/// The field of words without one.
inline constexpr std::string_view kDefaultField = "default";

/// Parses a query, UTF-8. Words are turned into terms by the analyzer of their field. A word or the bounds of
/// a range that are numbers mean numbers, unless they are quoted, as in CouchDB. In addition to CouchDB's
/// syntax, a wildcard can begin a term, so `field:*` finds the documents with a field.
/// Throws bad_request, with the position, if the syntax is wrong or a limit of query.h is exceeded.
Query parse_query(std::string_view query, const text::Analyzer& analyzer);

/// The phrase of the terms of a text; Kind::none if it has none. Throws bad_request if it has more than
/// kMaxQueryClauses.
Query parse_phrase(const std::string& field, std::string_view text, const text::Analyzer& analyzer);

/// The number that a word or a bound means; false if it is none: digits, with a sign, a fraction and an
/// exponent; or Infinity with a sign or none, if `with_infinity`.
bool parse_query_number(std::string_view text, bool with_infinity, double& number);

}  // namespace divan::index::search
