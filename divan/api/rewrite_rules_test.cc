#include "divan/api/rewrite_rules.h"

#include <functional>

#include "divan/base/error.h"
#include "divan/base/precompiled_test.h"

namespace divan::api {
namespace {

// The status and the name of the error that fn() throws.
std::string rule_error(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& error) { return std::to_string(error.status()) + " " + error.name(); }
  return "none";
}

using http::QueryParameter;

std::string rewritten(std::string_view rules, const std::vector<std::string>& path,
                      const std::vector<QueryParameter>& query = {}, std::string_view method = "GET") {
  return apply_rewrite_rules(rules, {.method = method, .path = path, .query = query}, true).value_or("none");
}

TEST(ApiRewriteRules, TheFirstRuleThatMatchesApplies) {
  const std::string_view rules =
      R"([{"from":"a","to":"1"},{"from":"/a/:x","to":"2"},{"from":"a/b","to":"3"},{"from":"a/*","to":"4"}])";
  EXPECT_EQ(rewritten(rules, {"a"}), "1");
  EXPECT_EQ(rewritten(rules, {"a", "b"}), "2?x=b");
  EXPECT_EQ(rewritten(rules, {"a", "b", "c"}), "4");
  EXPECT_EQ(rewritten(rules, {}), "none");
  EXPECT_EQ(rewritten(rules, {"b"}), "none");
}

TEST(ApiRewriteRules, ARuleWithoutAPathOrMethodMatchesAll) {
  EXPECT_EQ(rewritten(R"([{"to":"x"}])", {}), "x");
  EXPECT_EQ(rewritten(R"([{"to":"x/*"}])", {"a", "b"}), "x/a/b");
  EXPECT_EQ(rewritten(R"([{"to":"x","method":"*"}])", {}, {}, "COPY"), "x");
  EXPECT_EQ(rewritten(R"([{"to":"x","method":"PUT"},{"to":"y","method":"GET"}])", {}), "y");
  EXPECT_EQ(rewritten(R"([{"from":"","to":"x"}])", {}), "x");
  EXPECT_EQ(rewritten(R"([{"from":"/","to":"x"}])", {"a"}), "none");
}

// A star in the middle is no rest.
TEST(ApiRewriteRules, AStarInTheMiddleMatchesOneSegment) {
  EXPECT_EQ(rewritten(R"([{"from":"a/*/c","to":"x"}])", {"a", "b", "c"}), "x");
  EXPECT_EQ(rewritten(R"([{"from":"a/*/c","to":"x"}])", {"a", "b", "b", "c"}), "none");
}

TEST(ApiRewriteRules, VariablesAndParametersReplaceVariables) {
  EXPECT_EQ(rewritten(R"([{"from":":a/:b","to":"x/:b/:a/:q/:none"}])", {"1", "2"}, {{"q", "3"}}),
            "x/2/1/3/undefined?a=1&b=2&q=3");
  EXPECT_EQ(rewritten(R"([{"from":":a","to":"x","query":{"a":"own","k":":a"}}])", {"1"}), "x?a=own&k=1");
  EXPECT_EQ(rewritten(R"([{"to":"x","query":{"q":"own"}}])", {}, {{"q", "theirs"}}), "x?q=own");
  EXPECT_EQ(rewritten(R"([{"from":"*","to":"x","query":{"all":"*"}}])", {"a", "b"}), "x?all=a%2Fb");
}

TEST(ApiRewriteRules, KeysAreJson) {
  EXPECT_EQ(rewritten(R"([{"from":":a","to":"x","query":{"key":":a"}}])", {"3"}), "x?key=%223%22&a=3");
  EXPECT_EQ(rewritten(R"([{"from":":a","to":"x","query":{"key":":a"},"formats":{"a":"int"}}])", {"3"}),
            "x?key=3&a=3");
  EXPECT_EQ(rewritten(R"([{"from":":a","to":"x","query":{"key":[":a",{"b":":a"},1]}}])", {"3"}),
            "x?key=%5B%223%22%2C%7B%22b%22%3A%22%3Aa%22%7D%2C1%5D&a=3");
  EXPECT_EQ(rewritten(R"([{"to":"x/:key"}])", {}, {{"key", "\"k\""}}), "x/k?key=%22k%22");
  EXPECT_EQ(rule_error([&] { rewritten(R"([{"to":"x"}])", {}, {{"startkey", "{"}}); }), "400 bad_request");
}

TEST(ApiRewriteRules, FormatsChangeWhatTheyCan) {
  const auto with = [](const std::string& format, const std::string& value) {
    return rewritten(R"([{"from":":a","to":"x","query":{"key":":a"},"formats":{"a":")" + format + R"("}}])",
                     {value});
  };
  EXPECT_EQ(with("int", "-7"), "x?key=-7&a=-7");
  EXPECT_EQ(with("int", "7x"), "x?key=%227x%22&a=7x");
  EXPECT_EQ(with("int", "99999999999999999999"), "x?key=%2299999999999999999999%22&a=99999999999999999999");
  EXPECT_EQ(with("bool", "TRUE"), "x?key=true&a=TRUE");
  EXPECT_EQ(with("bool", "yes"), "x?key=%22yes%22&a=yes");
  EXPECT_EQ(with("other", "1"), "x?key=%221%22&a=1");
}

TEST(ApiRewriteRules, SegmentsAreEncoded) {
  EXPECT_EQ(rewritten(R"([{"from":":a","to":"x/:a?b"}])", {"ä/&"}), "x/undefined?a=%C3%A4%2F%26");
  EXPECT_EQ(rewritten(R"([{"from":":a","to":"x y/:a"}])", {"ä/&"}), "x%20y/%C3%A4%2F%26?a=%C3%A4%2F%26");
}

TEST(ApiRewriteRules, InvalidRulesAreErrorsEvenIfTheyDoNotApply) {
  EXPECT_EQ(rewritten(R"([1,"x",null,{"to":"y"}])", {}), "y");
  for (const std::string_view rule :
       {R"({"from":"x"})", R"({"to":1})", R"({"to":"x","from":[]})", R"({"to":"x","method":1})",
        R"({"to":"x","query":[]})", R"({"to":"x","formats":"int"})"}) {
    EXPECT_EQ(rule_error([&] { rewritten(R"([{"to":"y"},)" + std::string(rule) + "]", {}); }),
              "500 rewrite_error");
  }
}

TEST(ApiRewriteRules, ARuleHasAtMostTwoParents) {
  EXPECT_EQ(rewritten(R"([{"to":"../../x"}])", {}), "../../x");
  EXPECT_EQ(rule_error([&] { rewritten(R"([{"to":"../a/../../x"}])", {}); }), "500 insecure_rewrite_rule");
  const auto insecure =
      apply_rewrite_rules(R"([{"to":"../../../x"}])", {.method = "GET", .path = {}, .query = {}}, false);
  EXPECT_EQ(insecure, "../../../x");
}

TEST(ApiRewriteRules, PathsAreResolved) {
  EXPECT_EQ(resolve_path("/db/_design/d", "_show/f"), "/db/_design/d/_show/f");
  EXPECT_EQ(resolve_path("/db/_design/d", "/_show//./f/"), "/db/_design/d/_show/f");
  EXPECT_EQ(resolve_path("/db/_design/d", "../../a?x=/../y"), "/db/a?x=/../y");
  EXPECT_EQ(resolve_path("/db/_design/d", "../../.."), "/");
  EXPECT_EQ(resolve_path("/db/_design/d", "../../../../x"), "/../x");
  EXPECT_EQ(resolve_path("/db/_design/d", "../../../../../x"), "/../../x");
  EXPECT_EQ(resolve_path("/db/_design/d", ""), "/db/_design/d");
}

}  // namespace
}  // namespace divan::api
