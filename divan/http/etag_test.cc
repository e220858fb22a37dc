#include "divan/http/etag.h"

#include <gtest/gtest.h>

namespace divan::http {
namespace {

TEST(HttpEtag, AListMatchesByAnyOfItsTags) {
  EXPECT_TRUE(if_none_match("\"1-a\"", "\"1-a\""));
  EXPECT_TRUE(if_none_match("\"x\", \"1-a\"", "\"1-a\""));
  EXPECT_TRUE(if_none_match("\"x\",\"y\",\t\"1-a\" ,", "\"1-a\""));
  EXPECT_TRUE(if_none_match("*", "\"1-a\""));
  EXPECT_FALSE(if_none_match("\"1-b\"", "\"1-a\""));
  EXPECT_FALSE(if_none_match("\"1-\"", "\"1-a\""));
  EXPECT_FALSE(if_none_match("", "\"1-a\""));
}

TEST(HttpEtag, ComparesWeakly) {
  EXPECT_TRUE(if_none_match("W/\"1\"", "\"1\""));
  EXPECT_TRUE(if_none_match("\"1\"", "W/\"1\""));
  EXPECT_TRUE(if_none_match("W/\"0\", W/\"1\"", "W/\"1\""));
}

TEST(HttpEtag, ACommaOrAStarWithinQuotesIsPartOfTheTag) {
  EXPECT_TRUE(if_none_match("\"a,b\"", "\"a,b\""));
  EXPECT_FALSE(if_none_match("\"a,\"b\"", "\"b\""));
  EXPECT_FALSE(if_none_match("\"*\"", "\"1\""));
}

TEST(HttpEtag, AMalformedValueMatchesNoTag) {
  for (const auto* field : {"1", "\"1", "W/", "W/1", "1\"", "x \"1\"", ",", "w/\"1\""}) {
    EXPECT_FALSE(if_none_match(field, "\"1\"")) << field;
  }
}

}  // namespace
}  // namespace divan::http
