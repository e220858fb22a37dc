// The tokens of Lucene's query syntax.
// https://lucene.apache.org/core/4_6_0/queryparser/org/apache/lucene/queryparser/classic/package-summary.html
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace divan::index::search {

/// A token of a query. A value type.
struct QueryToken {
  enum class Kind : std::uint8_t {
    end,
    conjunction_and,  ///< AND, &&
    conjunction_or,   ///< OR, ||
    negation,         ///< NOT, !
    plus,
    minus,
    bare_operator,  ///< + - ! before white space: an ordinary word
    open,           ///< (
    close,          ///< )
    colon,
    star,    ///< * alone
    boost,   ///< ^ and `text`, a number
    quoted,  ///< `text` without the quotes, with its escapes
    term,    ///< a word; `text` has its escapes, as that of a prefix and a wildcard
    fuzzy,   ///< ~ and `text`, a number or empty
    prefix,  ///< a term and *
    wildcard,
    regex,  ///< `text` without the slashes
    range,  ///< [ or {, and all up to ] or }
  };
  Kind kind = Kind::end;
  std::string_view text;
  std::size_t position = 0;  ///< of its first byte in the query

  // Of a range: its bounds, and whether they were quoted.
  std::string_view lower, upper;
  bool is_lower_quoted = false, is_upper_quoted = false;
  bool with_lower = true, with_upper = true;
};

/// The error of a query: bad_request (400), with the position in characters from 1, as people count.
[[noreturn]] void throw_query_error(std::string_view query, std::size_t position, std::string_view problem);

/// Splits a query, UTF-8 of at most kMaxQueryBytes, into tokens. Not thread-safe.
class QueryLexer {
 public:
  /// `query` must outlive the lexer and its tokens.
  explicit QueryLexer(std::string_view query) : query_(query) {}

  /// Throws bad_request with the reason.
  QueryToken next();

 private:
  bool is_term_start() const;
  QueryToken token(QueryToken::Kind kind, std::size_t begin, std::string_view text) const;
  QueryToken quoted();
  QueryToken regex();
  QueryToken term();
  QueryToken range();
  QueryToken number(QueryToken::Kind kind);
  std::string_view bound(bool& is_quoted);
  void skip_space();
  [[noreturn]] void fail(std::size_t position, std::string_view problem) const {
    throw_query_error(query_, position, problem);
  }

  const std::string_view query_;
  std::size_t at_ = 0;
};

/// `text` without the backslashes of its escapes; \uXXXX is a character. Throws bad_request if an escape is
/// incomplete; `query` and `position` say where.
std::string unescape_term(std::string_view text, std::string_view query, std::size_t position);

}  // namespace divan::index::search
