// Lucene's syntax. Trees are compared as texts like those of Lucene's Query.toString().
#include "divan/index/search/query_parser.h"

#include <fmt/format.h>

#include "divan/base/error_testing.h"

namespace divan::index::search {
namespace {

std::string to_text(const Query& query);

std::string of_clauses(const Query& query) {
  std::string text;
  for (const auto& clause : query.clauses) {
    if (!text.empty()) text += ' ';
    if (clause.occur != Occur::should) text += clause.occur == Occur::must ? '+' : '-';
    text +=
        clause.query.kind == Query::Kind::boolean ? "(" + to_text(clause.query) + ")" : to_text(clause.query);
  }
  return text;
}

std::string of_phrase(const Query& query) {
  std::string text = "\"";
  std::uint32_t position = query.terms.front().second;
  for (const auto& [term, at] : query.terms) {
    if (text.size() > 1) text += ' ';
    for (; position + 1 < at; ++position) text += "? ";
    position = at;
    text += term;
  }
  text += '"';
  return query.slop == 0 ? text : text + fmt::format("~{}", query.slop);
}

std::string of_range(const Query& query) {
  const bool are_numbers = query.kind == Query::Kind::number_range;
  if (are_numbers && query.least == query.greatest) return fmt::format("#{}", query.least);
  const auto bound = [](bool there_is, const std::string& text) { return there_is ? "'" + text + "'" : "*"; };
  return fmt::format("{}{} TO {}{}", query.with_lower ? '[' : '{',
                     are_numbers ? fmt::to_string(query.least) : bound(query.has_lower, query.lower),
                     are_numbers ? fmt::to_string(query.greatest) : bound(query.has_upper, query.upper),
                     query.with_upper ? ']' : '}');
}

std::string to_text(const Query& query) {
  using Kind = Query::Kind;
  std::string text = query.field.empty() || query.field == "default" ? "" : query.field + ":";
  switch (query.kind) {
    case Kind::all: return "*:*";
    case Kind::none: return "none";
    case Kind::term: text += query.text; break;
    case Kind::phrase: text += of_phrase(query); break;
    case Kind::prefix: text += query.text + "*"; break;
    case Kind::wildcard: text += "wild(" + query.text + ")"; break;
    case Kind::regex: text += "/" + query.text + "/"; break;
    case Kind::fuzzy: text += fmt::format("{}~{}", query.text, query.edits); break;
    case Kind::boolean: text += of_clauses(query); break;
    default: text += of_range(query);
  }
  return query.boost == 1 ? text : text + fmt::format("^{}", query.boost);
}

std::string parsed(std::string_view query, std::string_view analyzer = R"("standard")") {
  return to_text(parse_query(query, *text::make_analyzer(analyzer)));
}

std::string problem_of(std::string_view query) {
  const auto what = divan::error_of([&] { parsed(query); });
  return what.starts_with("bad_request: ") ? what.substr(13) : what;
}

TEST(QueryParserTest, Words) {
  EXPECT_EQ(parsed("Hello"), "hello");
  EXPECT_EQ(parsed("hello world"), "hello world");
  EXPECT_EQ(parsed("title:Hello author:World"), "title:hello author:world");
  EXPECT_EQ(parsed("the"), "none");
  EXPECT_EQ(parsed("the cat"), "cat");
  EXPECT_EQ(parsed("foo-bar"), "foo bar");
  EXPECT_EQ(parsed("AT&T a|b"), "t b");  // "at" and "a" are stop words
  EXPECT_EQ(parsed("Zürich 東京"), "zürich (東 京)");
  EXPECT_EQ(parsed("foo\u3000bar"), "foo bar");
  EXPECT_EQ(parsed("*:*"), "*:*");
  EXPECT_EQ(parsed("\\*\\:\\(x"), "x");
  EXPECT_EQ(parsed("a\\:b", R"("keyword")"), "a:b");
  EXPECT_EQ(parsed("\\u0041bc", R"("keyword")"), "Abc");
  EXPECT_EQ(parsed("_id:5"), "_id:5");
}

TEST(QueryParserTest, Operators) {
  EXPECT_EQ(parsed("x AND y"), "+x +y");
  EXPECT_EQ(parsed("x && y || z"), "+x +y z");
  EXPECT_EQ(parsed("x OR y AND z"), "x +y +z");
  EXPECT_EQ(parsed("x AND y OR z"), "+x +y z");
  EXPECT_EQ(parsed("x NOT y"), "x -y");
  EXPECT_EQ(parsed("x AND NOT y"), "+x -y");
  EXPECT_EQ(parsed("x AND !y"), "+x -y");
  EXPECT_EQ(parsed("+x -y z"), "+x -y z");
  EXPECT_EQ(parsed("+x"), "+x");
  EXPECT_EQ(parsed("-x"), "-x");
  EXPECT_EQ(parsed("x - y"), "x y");
  EXPECT_EQ(parsed("(x OR y) AND z"), "+(x y) +z");
  EXPECT_EQ(parsed("title:(x y^2)^3"), "title:x title:y^2^3");
  EXPECT_EQ(parsed("x AND the AND y"), "+x +y");
  EXPECT_EQ(parsed("and or not"), "none");  // stop words
  EXPECT_EQ(parsed("ANDROID NOTES"), "android notes");
}

TEST(QueryParserTest, Phrases) {
  EXPECT_EQ(parsed("\"hello world\""), "\"hello world\"");
  EXPECT_EQ(parsed("title:\"Hello the World\"~3^2"), "title:\"hello ? world\"~3^2");
  EXPECT_EQ(parsed("\"hello\""), "hello");
  EXPECT_EQ(parsed("\"a \\\" b\"", R"("keyword")"), "a \" b");
  EXPECT_EQ(parsed("\"\""), "none");
  EXPECT_EQ(parsed("\"\"", R"("keyword")"), "");
}

TEST(QueryParserTest, TermsThatAreExpanded) {
  EXPECT_EQ(parsed("Foo*"), "foo*");
  EXPECT_EQ(parsed("Foo*", R"("keyword")"), "Foo*");
  EXPECT_EQ(parsed("f?O*o"), "wild(f?o*o)");
  EXPECT_EQ(parsed("f\\*o*"), "f*o*");
  EXPECT_EQ(parsed("title:*"), "title:wild(*)");
  EXPECT_EQ(parsed("*x"), "wild(*x)");
  EXPECT_EQ(parsed("/[mb]oAt/"), "/[mb]oat/");
  EXPECT_EQ(parsed("path:/a\\/b/"), "path:/a\\/b/");
  EXPECT_EQ(parsed("Roam~"), "roam~2");
  EXPECT_EQ(parsed("roam~1 roam~0.5^2"), "roam~1 roam~2^2");
  EXPECT_EQ(parsed("abcde~0.8"), "abcde~0");
  EXPECT_EQ(parsed("Élan*", R"("simple_asciifolding")"), "elan*");
}

TEST(QueryParserTest, NumbersAndRanges) {
  EXPECT_EQ(parsed("price:5"), "price:#5");
  EXPECT_EQ(parsed("price:\"5\""), "price:5");
  EXPECT_EQ(parsed("price:1.5e3 price:5d price:1.2.3"), "price:#1500 price:5d price:1.2.3");
  EXPECT_EQ(parsed("price:\\-5"), "price:#-5");
  EXPECT_EQ(parsed("price:[1 TO 5]"), "price:[1 TO 5]");
  EXPECT_EQ(parsed("price:{-1.5 TO 5]^2"), "price:{-1.5 TO 5]^2");
  EXPECT_EQ(parsed("price:[* TO 5}"), "price:[-inf TO 5}");
  EXPECT_EQ(parsed("price:[5 TO *]"), "price:[5 TO inf]");
  EXPECT_EQ(parsed("price:[-Infinity TO Infinity]"), "price:[-inf TO inf]");
  EXPECT_EQ(parsed("name:[Anna TO Berta}"), "name:['anna' TO 'berta'}");
  EXPECT_EQ(parsed("name:[Anna TO *]"), "name:['anna' TO *]");
  EXPECT_EQ(parsed("name:[\"5\" TO \"a b\"]", R"("keyword")"), "name:['5' TO 'a b']");
  EXPECT_EQ(parsed("big:1e999"), "big:#inf");
}

// Queries as they are shown have the same meaning.
TEST(QueryTest, IsShownInTheSyntax) {
  const auto analyzer = text::make_analyzer(R"("whitespace")");
  for (const auto* query :
       {"*:*", "word", "a\\:b:word", "f:\"some words\"~3", "f:wor*", "f:w?rd*x", "f:/w[ao]rd/", "f:word~1",
        "f:[a TO \"b c\"}", "f:{* TO b]", "f:5", "f:{-1.5 TO *]", "a b", "+a -b (c d)^2.5", "f:\"5\"",
        "f:\"a\\\"b\\\\\"", "(a (+b -c))^0", "f:/a\\/b/", "f:a\\*b*"}) {
    const auto parsed_query = parse_query(query, *analyzer);
    EXPECT_EQ(to_text(parse_query(to_lucene(parsed_query), *analyzer)), to_text(parsed_query))
        << query << " as " << to_lucene(parsed_query);
  }
}

TEST(QueryParserTest, Errors) {
  EXPECT_EQ(problem_of(""), "Cannot parse '': expected a word, at character 1.");
  EXPECT_EQ(problem_of("foo:"), "Cannot parse 'foo:': expected a word, at character 5.");
  EXPECT_EQ(problem_of("x AND"), "Cannot parse 'x AND': expected a word, at character 6.");
  EXPECT_EQ(problem_of("AND x"), "Cannot parse 'AND x': a word must come before this one, at character 1.");
  EXPECT_EQ(problem_of("x AND OR y"),
            "Cannot parse 'x AND OR y': expected a word instead of an operator, at character 7.");
  EXPECT_EQ(problem_of("é (x"), "Cannot parse 'é (x': a ) is missing, at character 5.");
  EXPECT_EQ(problem_of("x)"), "Cannot parse 'x)': there is no ( for this ), at character 2.");
  EXPECT_EQ(problem_of("()"), "Cannot parse '()': expected a word, at character 2.");
  EXPECT_EQ(problem_of("\"x"), "Cannot parse '\"x': the closing quotation mark is missing, at character 1.");
  EXPECT_EQ(problem_of("x:[1 TO"),
            "Cannot parse 'x:[1 TO': expected TO between the bounds of a range, at character 6.");
  EXPECT_EQ(problem_of("x:[1 TO 2"),
            "Cannot parse 'x:[1 TO 2': expected ] or } at the end of a range, at character 10.");
  EXPECT_EQ(problem_of("x]"), "Cannot parse 'x]': a range must begin with [ or {, at character 2.");
  EXPECT_EQ(problem_of("x^"), "Cannot parse 'x^': expected a number after ^, at character 2.");
  EXPECT_EQ(problem_of("x~1.5"),
            "Cannot parse 'x~1.5': the number after ~ must be an integer, or less than 1, at character 2.");
  EXPECT_EQ(problem_of("x\\"), "Cannot parse 'x\\': a character must follow a backslash, at character 2.");
  EXPECT_EQ(problem_of("\\u12"),
            "Cannot parse '\\u12': four hexadecimal digits must follow \\u, at character 1.");
  EXPECT_EQ(problem_of("/x"),
            "Cannot parse '/x': the closing / of an expression is missing (an ordinary / is written \\/), at "
            "character 1.");
  EXPECT_EQ(problem_of("/a~/"),
            "Cannot parse '/a~/': the operator ~ of expressions is not supported, at character 1.");
  EXPECT_THAT(problem_of("/a(/"), ::testing::StartsWith("Cannot parse '/a(/': the expression is invalid: "));
  EXPECT_EQ(problem_of("\xff"), "The query is not valid UTF-8.");
}

TEST(QueryParserTest, Limits) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '(') + "x" + std::string(depth, ')');
  };
  EXPECT_EQ(parsed(nested(kMaxQueryDepth)), "x");
  EXPECT_THAT(problem_of(nested(kMaxQueryDepth + 1)), ::testing::HasSubstr("more than 100 parentheses"));
  EXPECT_THAT(problem_of(nested(100'000)), ::testing::HasSubstr("more than 100 parentheses"));
  std::string words;
  for (std::size_t i = 0; i < kMaxQueryClauses; ++i) words += "x ";
  EXPECT_EQ(parsed(words).size(), 2 * kMaxQueryClauses - 1);
  EXPECT_THAT(problem_of(words + "x"), ::testing::HasSubstr("4096 clauses at most"));
  EXPECT_THAT(problem_of("x^" + std::string(400, '9')), ::testing::HasSubstr("a boost must be at most"));
  EXPECT_EQ(parsed("(x^1000000)^1000000"), "x^1000000000");
  EXPECT_EQ(parsed("\"x y\"~" + std::string(400, '9')), "\"x y\"~10000");
  EXPECT_THAT(problem_of('"' + words + words + '"'), ::testing::HasSubstr("words at most"));
  EXPECT_EQ(problem_of(std::string(kMaxQueryBytes + 1, 'x')), "A query can have 1048576 bytes at most.");
}

}  // namespace
}  // namespace divan::index::search
