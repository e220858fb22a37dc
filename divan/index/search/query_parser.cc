#include "divan/index/search/query_parser.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/index/search/query_lexer.h"
#include "divan/index/search/term_matcher.h"
#include "divan/text/characters.h"

namespace divan::index::search {
namespace {

using Kind = QueryToken::Kind;

constexpr int kMostEdits = 2;

// Terms with their positions.
using Terms = std::vector<std::pair<std::string, std::uint32_t>>;

// The terms of a text. Calls `fail`, which must throw, if there are too many.
Terms terms_of(const std::string& field, std::string_view text, const text::Analyzer& analyzer,
               const std::function<void(std::string_view problem)>& fail) {
  Terms terms;
  analyzer.analyzer_for(field).analyze(text, [&](const text::Token& token) {
    terms.emplace_back(token.term, token.position);
    if (terms.size() > kMaxQueryClauses)
      fail(fmt::format("a query can have {} words at most", kMaxQueryClauses));
  });
  return terms;
}

// A phrase of the terms, of which there is one at least, or alternatives.
Query query_of(const std::string& field, Terms terms, bool is_phrase, std::uint32_t slop) {
  const auto term_query = [&](std::string term) {
    Query query{.kind = Query::Kind::term, .field = field};
    query.text = std::move(term);
    return query;
  };
  if (terms.size() == 1) return term_query(std::move(terms.front().first));
  const bool is_one_position = terms.front().second == terms.back().second;
  if (is_phrase && !is_one_position)
    return {.kind = Query::Kind::phrase, .field = field, .terms = std::move(terms), .slop = slop};
  Query query{.kind = Query::Kind::boolean};
  for (auto& [term, position] : terms) query.clauses.push_back({Occur::should, term_query(std::move(term))});
  return query;
}

class QueryParser {
 public:
  QueryParser(std::string_view query, const text::Analyzer& analyzer)
      : query_(query), analyzer_(analyzer), lexer_(query) {}

  Query parse() {
    advance();
    Query query = parse_clauses(std::string(kDefaultField), 0);
    if (token_.kind == Kind::close) fail("there is no ( for this )");
    if (token_.kind != Kind::end) fail("expected a word");
    return query;
  }

 private:
  [[noreturn]] void fail(std::string_view problem) const {
    throw_query_error(query_, token_.position, problem);
  }
  void advance() { token_ = lexer_.next(); }

  // clause ([AND | OR] clause)*, as the grammar of Lucene's classic query parser: AND makes the clauses on
  // both sides mandatory, whatever came before.
  Query parse_clauses(const std::string& field, int depth) {
    Query query{.kind = Query::Kind::boolean};
    bool is_plain = true;  // without + - or NOT
    bool is_first = true;
    do {
      const bool is_conjunction = token_.kind == Kind::conjunction_and;
      if (is_conjunction || token_.kind == Kind::conjunction_or) {
        if (is_first) fail("a word must come before this one");
        advance();
      }
      is_first = false;
      const std::optional<Occur> modifier = parse_modifier();
      if (modifier) is_plain = false;
      auto clause = parse_clause(field, depth);
      if (is_conjunction && !query.clauses.empty() && query.clauses.back().occur == Occur::should)
        query.clauses.back().occur = Occur::must;
      if (clause.kind == Query::Kind::none) continue;
      const Occur occur = modifier.value_or(is_conjunction ? Occur::must : Occur::should);
      query.clauses.push_back({occur, std::move(clause)});
      if (++clauses_ > kMaxQueryClauses)
        fail(fmt::format("a query can have {} clauses at most", kMaxQueryClauses));
    } while (token_.kind != Kind::end && token_.kind != Kind::close);
    if (query.clauses.empty()) return {};
    if (query.clauses.size() == 1 && is_plain) return std::move(query.clauses.front().query);
    return query;
  }

  std::optional<Occur> parse_modifier() {
    std::optional<Occur> occur;
    if (token_.kind == Kind::plus) {
      occur = Occur::must;
    } else if (token_.kind == Kind::minus || token_.kind == Kind::negation) {
      occur = Occur::must_not;
    } else {
      return std::nullopt;
    }
    advance();
    return occur;
  }

  Query parse_clause(std::string field, int depth) {
    if (token_.kind == Kind::term || token_.kind == Kind::star) {
      // A field, if a colon follows.
      const auto name = token_;
      advance();
      if (token_.kind == Kind::colon) {
        field = name.kind == Kind::star ? "*" : unescape_term(name.text, query_, name.position);
        advance();
      } else {
        return parse_word(field, name);
      }
    }
    if (token_.kind == Kind::open) {
      if (depth == kMaxQueryDepth)
        fail(fmt::format("more than {} parentheses in one another", kMaxQueryDepth));
      advance();
      if (token_.kind == Kind::close) fail("expected a word");
      Query query = parse_clauses(field, depth + 1);
      if (token_.kind != Kind::close) fail("a ) is missing");
      advance();
      parse_boost(query);
      return query;
    }
    const auto word = token_;
    advance();
    return parse_word(field, word);
  }

  // A word, and what may follow it; token_ is the next one.
  Query parse_word(const std::string& field, const QueryToken& word) {
    std::optional<QueryToken> fuzzy;
    double boost = 1;
    const bool can_be_fuzzy = word.kind != Kind::range;
    for (;; advance()) {
      if (token_.kind == Kind::boost) {
        boost = boost_of(token_);
      } else if (token_.kind == Kind::fuzzy && can_be_fuzzy && !fuzzy) {
        fuzzy = token_;
      } else {
        break;
      }
    }
    Query query = make_query(field, word, fuzzy);
    query.boost = std::min(query.boost * boost, kMaxBoost);
    return query;
  }

  void parse_boost(Query& query) {
    if (token_.kind != Kind::boost) return;
    query.boost = std::min(query.boost * boost_of(token_), kMaxBoost);
    advance();
  }

  double boost_of(const QueryToken& token) const {
    double boost = 0;
    const char* const end = token.text.data() + token.text.size();
    if (std::from_chars(token.text.data(), end, boost).ec != std::errc() || boost > kMaxBoost)
      throw_query_error(query_, token.position, fmt::format("a boost must be at most {}", kMaxBoost));
    return boost;
  }

  Query make_query(const std::string& field, const QueryToken& word, const std::optional<QueryToken>& fuzzy) {
    switch (word.kind) {
      case Kind::term:
        return fuzzy ? fuzzy_query(field, word, *fuzzy) : words(field, unescape(word), false, 0);
      case Kind::bare_operator: return words(field, std::string(word.text), false, 0);
      case Kind::quoted: return words(field, unescape(word), true, fuzzy ? slop_of(*fuzzy) : 0);
      case Kind::star:
      case Kind::wildcard:
        if (field == "*" && word.kind == Kind::star) return {.kind = Query::Kind::all};
        if (word.text.size() > kMaxPatternBytes)
          throw_query_error(query_, word.position,
                            fmt::format("a word with wildcards can have {} bytes at most", kMaxPatternBytes));
        return expanded(Query::Kind::wildcard, field, word.text);
      case Kind::prefix: return expanded(Query::Kind::prefix, field, unescape(word));
      case Kind::regex: {
        Query query = expanded(Query::Kind::regex, field, word.text);
        if (const auto problem = problem_of_regex(query.text); !problem.empty())
          throw_query_error(query_, word.position, problem);
        return query;
      }
      case Kind::range: return range_query(field, word);
      case Kind::end: throw_query_error(query_, word.position, "expected a word");
      case Kind::conjunction_and:
      case Kind::conjunction_or:
      case Kind::negation:
      case Kind::plus:
      case Kind::minus: throw_query_error(query_, word.position, "expected a word instead of an operator");
      default:
        throw_query_error(query_, word.position,
                          fmt::format("expected a word instead of {}", query_.substr(word.position, 1)));
    }
  }

  std::string unescape(const QueryToken& token) const {
    return unescape_term(token.text, query_, token.position);
  }

  std::uint32_t slop_of(const QueryToken& fuzzy) const {
    double slop = 0;
    const char* const end = fuzzy.text.data() + fuzzy.text.size();
    if (std::from_chars(fuzzy.text.data(), end, slop).ec != std::errc()) return kMaxSlop;
    return static_cast<std::uint32_t>(std::min<double>(slop, kMaxSlop));
  }

  // Terms that are expanded are not analyzed, but their letters are lowercased unless the field's are not.
  Query expanded(Query::Kind kind, const std::string& field, std::string_view text) const {
    Query query{.kind = kind, .field = field};
    query.text = analyzer_.analyzer_for(field).normalize(text);
    return query;
  }

  Query fuzzy_query(const std::string& field, const QueryToken& word, const QueryToken& fuzzy) const {
    double number = kMostEdits;
    const char* const end = fuzzy.text.data() + fuzzy.text.size();
    if (!fuzzy.text.empty() && std::from_chars(fuzzy.text.data(), end, number).ec != std::errc())
      number = kMostEdits;
    Query query = expanded(Query::Kind::fuzzy, field, unescape(word));
    if (number >= 1) {
      if (number != std::floor(number))
        throw_query_error(query_, fuzzy.position, "the number after ~ must be an integer, or less than 1");
      query.edits = static_cast<int>(std::min<double>(number, kMostEdits));
    } else {
      // A similarity, as in earlier versions of Lucene.
      const double edits = (1 - number) * static_cast<double>(text::count_characters(query.text));
      query.edits = static_cast<int>(std::min<double>(edits, kMostEdits));
    }
    return query;
  }

  Query range_query(const std::string& field, const QueryToken& range) const {
    Query query{.kind = Query::Kind::number_range, .field = field};
    query.with_lower = range.with_lower;
    query.with_upper = range.with_upper;
    query.has_lower = range.is_lower_quoted || range.lower != "*";
    query.has_upper = range.is_upper_quoted || range.upper != "*";
    const auto is_number = [&](bool has_bound, bool is_quoted, std::string_view text, double& number) {
      return !has_bound || (!is_quoted && parse_query_number(text, true, number));
    };
    query.least = -std::numeric_limits<double>::infinity();
    query.greatest = std::numeric_limits<double>::infinity();
    if (is_number(query.has_lower, range.is_lower_quoted, range.lower, query.least) &&
        is_number(query.has_upper, range.is_upper_quoted, range.upper, query.greatest))
      return query;
    query.kind = Query::Kind::text_range;
    const auto& analyzer = analyzer_.analyzer_for(field);
    const auto term = [&](std::string_view text) {
      return analyzer.normalize(unescape_term(text, query_, range.position));
    };
    if (query.has_lower) query.lower = term(range.lower);
    if (query.has_upper) query.upper = term(range.upper);
    return query;
  }

  // What the analyzer makes of a word, or of a text in quotation marks.
  Query words(const std::string& field, const std::string& text, bool is_quoted, std::uint32_t slop) {
    if (double number = 0; !is_quoted && !field.starts_with('_') && parse_query_number(text, false, number))
      return {.kind = Query::Kind::number_range, .field = field, .least = number, .greatest = number};
    auto terms = terms_of(field, text, analyzer_, [&](std::string_view problem) { fail(problem); });
    if (terms.empty()) return {};
    clauses_ += terms.size() - 1;
    return query_of(field, std::move(terms), is_quoted, slop);
  }

  const std::string_view query_;
  const text::Analyzer& analyzer_;
  QueryLexer lexer_;
  QueryToken token_;
  std::size_t clauses_ = 0;
};

}  // namespace

Query parse_phrase(const std::string& field, std::string_view text, const text::Analyzer& analyzer) {
  const auto fail = [](std::string_view problem) {
    throw bad_request(fmt::format("The query is invalid: {}.", problem));
  };
  auto terms = terms_of(field, text, analyzer, fail);
  if (terms.empty()) return {};
  return query_of(field, std::move(terms), true, 0);
}

bool parse_query_number(std::string_view text, bool with_infinity, double& number) {
  const bool is_signed = text.starts_with('-') || text.starts_with('+');
  const auto digits = text.substr(is_signed ? 1 : 0);
  if (with_infinity && digits == "Infinity") {
    number = text.starts_with('-') ? -std::numeric_limits<double>::infinity()
                                   : std::numeric_limits<double>::infinity();
    return true;
  }
  if (digits.empty() || digits.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return false;
  if (digits.front() == '-' || digits.front() == '+') return false;
  double value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [parsed, error] = std::from_chars(digits.data(), end, value);
  if (parsed != end) return false;
  if (error == std::errc::result_out_of_range) {
    // Too large, or almost zero.
    value = digits.find("e-") != std::string_view::npos || digits.find("E-") != std::string_view::npos
                ? 0
                : std::numeric_limits<double>::infinity();
  } else if (error != std::errc()) {
    return false;
  }
  number = text.starts_with('-') ? -value : value;
  return true;
}

Query parse_query(std::string_view query, const text::Analyzer& analyzer) {
  if (!is_utf8(query)) throw bad_request("The query is not valid UTF-8.");
  if (query.size() > kMaxQueryBytes)
    throw bad_request(fmt::format("A query can have {} bytes at most.", kMaxQueryBytes));
  return QueryParser(query, analyzer).parse();
}

}  // namespace divan::index::search
