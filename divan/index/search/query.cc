#include "divan/index/search/query.h"

#include <fmt/core.h>

#include <cmath>

#include "divan/base/json.h"

namespace divan::index::search {
namespace {

constexpr std::string_view kSpecial = "+-&|!(){}[]^\"~*?:\\/ ";

// A term with the characters escaped that have a meaning in the syntax; in a wildcard, not * and ?.
std::string escaped(std::string_view text, std::string_view special = kSpecial) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string in_quotes(std::string_view text) { return fmt::format("\"{}\"", escaped(text, "\"\\")); }

std::string number(double value) {
  if (std::isinf(value)) return "*";
  std::string text;
  json::append_double(text, value);
  return text;
}

std::string range(const Query& query, std::string_view lower, std::string_view upper) {
  return fmt::format("{}{} TO {}{}", query.with_lower ? '[' : '{', lower, upper,
                     query.with_upper ? ']' : '}');
}

std::string phrase(const Query& query) {
  std::string words;
  for (const auto& [term, position] : query.terms) words += (words.empty() ? "" : " ") + term;
  return in_quotes(words) + (query.slop > 0 ? fmt::format("~{}", query.slop) : "");
}

// What follows the field.
std::string value(const Query& query) {
  switch (query.kind) {
    case Query::Kind::term: return in_quotes(query.text);
    case Query::Kind::phrase: return phrase(query);
    case Query::Kind::prefix: return escaped(query.text) + "*";
    case Query::Kind::wildcard: return query.text;
    case Query::Kind::regex: return "/" + query.text + "/";
    case Query::Kind::fuzzy: return fmt::format("{}~{}", escaped(query.text), query.edits);
    case Query::Kind::text_range:
      return range(query, query.has_lower ? in_quotes(query.lower) : "*",
                   query.has_upper ? in_quotes(query.upper) : "*");
    case Query::Kind::number_range:
      if (query.least == query.greatest) return number(query.least);
      return range(query, number(query.least), number(query.greatest));
    case Query::Kind::all:
    case Query::Kind::none:
    case Query::Kind::boolean: break;
  }
  return {};
}

std::string clauses(const Query& query) {
  std::string all;
  for (const auto& [occur, clause] : query.clauses) {
    if (!all.empty()) all += ' ';
    if (occur == Occur::must) all += '+';
    if (occur == Occur::must_not) all += '-';
    all += to_lucene(clause);
  }
  return fmt::format("({})", all);
}

}  // namespace

Query in_partition(Query query, std::string partition) {
  Query term{.kind = Query::Kind::term, .field = "_partition", .boost = 0};
  term.text = std::move(partition);
  Query both{.kind = Query::Kind::boolean};
  both.clauses.push_back({Occur::must, std::move(term)});
  both.clauses.push_back({Occur::must, std::move(query)});
  return both;
}

std::string to_lucene(const Query& query) {
  const std::string boost = query.boost == 1 ? "" : "^" + number(query.boost);
  switch (query.kind) {
    case Query::Kind::all: return "*:*" + boost;
    case Query::Kind::none: return "";
    case Query::Kind::boolean: return clauses(query) + boost;
    default: return escaped(query.field) + ":" + value(query) + boost;
  }
}

}  // namespace divan::index::search
