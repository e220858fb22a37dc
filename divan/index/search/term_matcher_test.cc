#include "divan/index/search/term_matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "divan/text/characters.h"

namespace divan::index::search {
namespace {

Query query_of(Query::Kind kind, std::string text) {
  Query query{.kind = kind};
  query.text = std::move(text);
  return query;
}

bool matches(Query::Kind kind, const std::string& text, std::string_view term) {
  return TermMatcher(query_of(kind, text)).match(term).has_value();
}

TEST(TermMatcherTest, Wildcards) {
  const auto wild = [](const std::string& pattern, std::string_view term) {
    return matches(Query::Kind::wildcard, pattern, term);
  };
  EXPECT_TRUE(wild("*", ""));
  EXPECT_TRUE(wild("a*c", "abbc"));
  EXPECT_TRUE(wild("a*b*c", "aXbYbZc"));
  EXPECT_FALSE(wild("a*b*c", "aXcYb"));
  EXPECT_TRUE(wild("?", "é"));
  EXPECT_FALSE(wild("??", "é"));
  EXPECT_TRUE(wild("*ab", "aab"));
  EXPECT_TRUE(wild("a\\*b", "a*b"));
  EXPECT_FALSE(wild("a\\*b", "axb"));
  EXPECT_FALSE(wild("?", ""));
}

TEST(TermMatcherTest, Expressions) {
  const auto regex = [](const std::string& expression, std::string_view term) {
    return matches(Query::Kind::regex, expression, term);
  };
  EXPECT_TRUE(regex("[bc]at", "cat"));
  EXPECT_FALSE(regex("[bc]at", "cats"));  // whole terms
  EXPECT_TRUE(regex("a.c", "aéc"));
  EXPECT_TRUE(regex("a@c", "abbbc"));
  EXPECT_TRUE(regex("a\"b.c\"d", "ab.cd"));
  EXPECT_FALSE(regex("a\"b.c\"d", "abxcd"));
  EXPECT_TRUE(regex("^a$", "^a$"));  // not special
  EXPECT_TRUE(regex("\\d", "d"));    // not a class
  EXPECT_TRUE(regex("(ab|cd){2}", "abcd"));
  EXPECT_TRUE(regex("[^a-c]+", "xyz"));
  EXPECT_EQ(problem_of_regex("a(b)?c"), "");
  EXPECT_EQ(problem_of_regex("a\\"), "a character must follow a backslash");
  EXPECT_EQ(problem_of_regex("(?i)a"), "a ? must follow what may be missing");
  EXPECT_EQ(problem_of_regex("a\"b"), "a closing quotation mark is missing in the expression");
  EXPECT_EQ(problem_of_regex("<1-5>"), "the operator < of expressions is not supported");
  EXPECT_EQ(problem_of_regex(std::string(1'001, 'a')), "an expression can have 1000 bytes at most");
}

// The number of edits, with the whole table.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        table[i][j] = i + j;
        continue;
      }
      table[i][j] = std::min(
          {table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
    }
  }
  return table[a.size()][b.size()];
}

TEST(TermMatcherTest, SimilarTermsAreThoseWithFewEdits) {
  std::mt19937 random(3);
  const auto word = [&] {
    std::string letters;
    for (auto count = random() % 9; count > 0; --count) letters += static_cast<char>('a' + random() % 3);
    return letters;
  };
  std::size_t similar = 0;
  for (int round = 0; round < 20'000; ++round) {
    const auto text = word(), term = word();
    Query query = query_of(Query::Kind::fuzzy, text);
    query.edits = static_cast<int>(random() % 3);
    const auto edits = edits_between(text, term);
    const double similarity = 1 - static_cast<double>(edits) / static_cast<double>(std::max<std::size_t>(
                                                                   1, std::min(text.size(), term.size())));
    const auto found = TermMatcher(query).match(term);
    const bool is_similar = edits <= static_cast<std::size_t>(query.edits) && similarity > 0;
    ASSERT_EQ(found.has_value(), is_similar) << text << " " << term << " " << query.edits;
    if (!found) continue;
    ++similar;
    ASSERT_DOUBLE_EQ(*found, similarity);
  }
  EXPECT_GT(similar, 500u);
  EXPECT_TRUE(matches(Query::Kind::fuzzy, "zürich", "zurich"));  // characters, not bytes
}

TEST(TermMatcherTest, TermsAreWithinTheBounds) {
  const auto check = [](const Query& query, std::string_view term) {
    const TermMatcher matcher(query);
    ASSERT_TRUE(matcher.match(term)) << term;
    EXPECT_LE(matcher.begin(), term);
    EXPECT_TRUE(matcher.end().empty() || term < matcher.end());
  };
  check(query_of(Query::Kind::prefix, "ab"), "ab");
  check(query_of(Query::Kind::prefix, "ab"), "ab\xf4\x8f\xbf\xbf");
  check(query_of(Query::Kind::wildcard, "a\\*b*"), "a*bc");
  check(query_of(Query::Kind::regex, "abc.*"), "abczzzz");
  check(query_of(Query::Kind::regex, "abcdefghijklmnopqrstuvwxyz"), "abcdefghijklmnopqrstuvwxyz");
  Query range{
      .kind = Query::Kind::text_range, .lower = "b", .upper = "d", .has_lower = true, .has_upper = true};
  check(range, "b");
  check(range, "d");
  range.with_lower = range.with_upper = false;
  EXPECT_FALSE(TermMatcher(range).match("b"));
  EXPECT_FALSE(TermMatcher(range).match("d"));
  EXPECT_TRUE(TermMatcher(range).match("bb"));
}

}  // namespace
}  // namespace divan::index::search
