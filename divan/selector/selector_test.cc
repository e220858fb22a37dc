#include "divan/selector/selector.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/selector/condition.h"

namespace divan::selector {
namespace {

using testing::HasSubstr;

bool matches(std::string_view selector, std::string_view document) {
  return Selector::parse(json::compact(selector)).matches(json::compact(document));
}

std::string refusal(std::string_view selector) {
  try {
    Selector::parse(json::compact(selector));
    return "none";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), 400) << selector;
    return error.name() + ": " + error.reason();
  }
}

struct Case {
  const char* selector;
  std::vector<const char*> matching;
  std::vector<const char*> others;
};

void check(const std::vector<Case>& cases) {
  for (const auto& [selector, matching, others] : cases) {
    for (const auto* document : matching)
      EXPECT_TRUE(matches(selector, document)) << selector << " " << document;
    for (const auto* document : others)
      EXPECT_FALSE(matches(selector, document)) << selector << " " << document;
  }
}

TEST(Selector, Fields) {
  check({
      {R"({})", {R"({})", R"({"a":1})"}, {}},
      {R"({"a":1})",
       {R"({"a":1})", R"({"a":1.0,"b":2})"},
       {R"({})", R"({"a":"1"})", R"({"b":{"a":1}})", R"({"a":[1]})"}},
      {R"({"a":1,"b":2})", {R"({"a":1,"b":2})"}, {R"({"a":1})", R"({"a":1,"b":3})"}},
      {R"({"a.b":1})", {R"({"a":{"b":1}})"}, {R"({"a.b":1})", R"({"a":1})", R"({"a":[{"b":1}]})"}},
      {R"({"a":{"b":1}})", {R"({"a":{"b":1}})", R"({"a":{"b":1,"c":2}})"}, {R"({"a":{"c":1}})"}},
      {R"({"a\\.b":1})", {R"({"a.b":1})"}, {R"({"a":{"b":1}})"}},
      {R"({"a\\\\.b":1})", {R"({"a.b":1})"}, {R"({"a":{"b":1}})"}},
      {R"({"caf\u00e9":1})", {R"({"café":1})", R"({"caf\u00e9":1})"}, {R"({"cafe":1})"}},
      {R"({"a.1.b":2})",
       {R"({"a":[{},{"b":2}]})", R"({"a":{"1":{"b":2}}})"},
       {R"({"a":[{"b":2}]})", R"({"a":2})"}},
      {R"({"a":{}})", {R"({"a":{}})"}, {R"({"a":{"b":1}})", R"({})"}},
      {R"({"a":[1,{"b":2}]})", {R"({"a":[1,{"b":2}]})"}, {R"({"a":[1]})", R"({"a":1})"}},
      {R"({"a":null})", {R"({"a":null})"}, {R"({})", R"({"a":false})"}},
      {R"({"a":1,"\u0061":2})", {R"({"a":2})"}, {R"({"a":1})"}},
      // Ids are ordered by their bytes.
      {R"({"_id":{"$gt":"B"}})", {R"({"_id":"a"})", R"({"_id":"C"})"}, {R"({"_id":"B"})", R"({"_id":"A"})"}},
  });
}

// Values of different types have CouchDB's order: null, booleans, numbers, strings, arrays, objects.
TEST(Selector, Comparisons) {
  check({
      {R"({"a":{"$lt":2}})",
       {R"({"a":1})", R"({"a":null})", R"({"a":true})"},
       {R"({"a":2})", R"({"a":"1"})", R"({})"}},
      {R"({"a":{"$lte":2}})", {R"({"a":2.0})"}, {R"({"a":2.1})"}},
      {R"({"a":{"$gt":2}})",
       {R"({"a":3})", R"({"a":"0"})", R"({"a":[]})", R"({"a":{}})"},
       {R"({"a":2})", R"({"a":null})"}},
      {R"({"a":{"$gte":"b"}})", {R"({"a":"b"})", R"({"a":"C"})"}, {R"({"a":"a"})"}},
      {R"({"a":{"$ne":1}})", {R"({"a":2})", R"({"a":"1"})"}, {R"({"a":1})", R"({})"}},
      {R"({"a":{"$gt":1,"$lt":3}})", {R"({"a":2})"}, {R"({"a":1})", R"({"a":3})"}},
      {R"({"a":{"$eq":{"$eq":1}}})", {R"({"a":{"$eq":1}})"}, {R"({"a":1})"}},
  });
}

TEST(Selector, Combinations) {
  check({
      {R"({"$and":[{"a":1},{"b":2}]})", {R"({"a":1,"b":2})"}, {R"({"a":1})"}},
      {R"({"$or":[{"a":1},{"b":2}]})", {R"({"a":1})", R"({"b":2})"}, {R"({})"}},
      {R"({"$nor":[{"a":1},{"b":2}]})", {R"({"a":2,"b":1})"}, {R"({"a":1,"b":1})", R"({"a":2})"}},
      {R"({"$not":{"a":1}})", {R"({"a":2})"}, {R"({"a":1})", R"({})"}},
      {R"({"a":{"$not":{"$gt":1}}})", {R"({"a":1})"}, {R"({"a":2})", R"({})"}},
      {R"({"$not":{"$not":{"a":1}}})", {R"({"a":1})"}, {R"({"a":2})"}},
      {R"({"$not":{"$or":[{"a":1},{"b":2}]}})", {R"({"a":2,"b":1})"}, {R"({"a":1,"b":1})"}},
      {R"({"$not":{"a":1,"b":2}})", {R"({"a":1,"b":1})", R"({"a":2})"}, {R"({"a":1,"b":2})"}},
      {R"({"a":{"$or":[{"$eq":1},{"$eq":2}]}})", {R"({"a":1})", R"({"a":2})"}, {R"({"a":3})"}},
      {R"({"a":{"$and":[{"b":1},{"c":{"$gt":2}}]}})", {R"({"a":{"b":1,"c":3}})"}, {R"({"a":{"b":1,"c":2}})"}},
      {R"({"$and":[]})", {R"({})"}, {}},
      {R"({"$or":[]})", {R"({})"}, {}},
      {R"({"$nor":[]})", {R"({})"}, {}},
  });
}

TEST(Selector, Lists) {
  check({
      {R"({"a":{"$in":[1,"x"]}})",
       {R"({"a":1})", R"({"a":"x"})", R"({"a":[3,1]})"},
       {R"({"a":2})", R"({"a":[]})", R"({})"}},
      {R"({"a":{"$nin":[1,2]}})", {R"({"a":3})", R"({"a":[3]})"}, {R"({"a":1})", R"({"a":[3,2]})", R"({})"}},
      {R"({"a":{"$in":[]}})", {}, {R"({"a":1})"}},
      {R"({"a":{"$nin":[]}})", {R"({"a":1})"}, {R"({})"}},
      {R"({"$not":{"a":{"$in":[1]}}})", {R"({"a":2})"}, {R"({"a":1})"}},
      {R"({"a":{"$all":[1,2]}})", {R"({"a":[2,3,1]})"}, {R"({"a":[1]})", R"({"a":1})"}},
      {R"({"a":{"$all":[[1,2]]}})", {R"({"a":[1,2]})", R"({"a":[[1,2]]})"}, {R"({"a":[2,1]})"}},
      {R"({"a":{"$all":[]}})", {}, {R"({"a":[]})"}},
      {R"({"a":{"$size":2}})", {R"({"a":[1,2]})"}, {R"({"a":[1]})", R"({"a":[1,2,3]})", R"({"a":2})"}},
      {R"({"a":{"$elemMatch":{"b":1}}})",
       {R"({"a":[{},{"b":1}]})"},
       {R"({"a":[{"b":2}]})", R"({"a":{"b":1}})", R"({"a":[]})"}},
      {R"({"a":{"$elemMatch":{"$gte":80,"$lt":85}}})", {R"({"a":[1,82]})"}, {R"({"a":[79,85]})"}},
      {R"({"a":{"$allMatch":{"$gt":1}}})",
       {R"({"a":[2,3]})"},
       {R"({"a":[1,2]})", R"({"a":[]})", R"({"a":2})"}},
      {R"({"a":{"$not":{"$allMatch":{"$gt":1}}}})",
       {R"({"a":[1]})", R"({"a":[]})"},
       {R"({"a":[2]})", R"({})"}},
      {R"({"a":{"$elemMatch":{"$not":{"b":1}}}})",
       {R"({"a":[{}]})", R"({"a":[{"b":2}]})"},
       {R"({"a":[{"b":1}]})"}},
      {R"({"a":{"$elemMatch":{"b":{"$not":{"$eq":1}}}}})", {R"({"a":[{}]})"}, {R"({"a":[{"b":1}]})"}},
      {R"({"$not":{"a":{"$elemMatch":{"$not":{"b":1}}}}})",
       {R"({"a":[{"b":1}]})"},
       {R"({"a":[{}]})", R"({})"}},
      {R"({"a":{"$elemMatch":{"$nor":[{"b":1},{"c":1}]}}})",
       {R"({"a":[{}]})"},
       {R"({"a":[{"b":1},{"c":1}]})"}},
      {R"({"a":{"$keyMapMatch":{"$eq":"b"}}})",
       {R"({"a":{"c":1,"b":2}})"},
       {R"({"a":{"c":"b"}})", R"({"a":["b"]})"}},
  });
}

TEST(Selector, OtherConditions) {
  check({
      {R"({"a":{"$exists":true}})", {R"({"a":null})"}, {R"({})"}},
      {R"({"a":{"$exists":false}})", {R"({})"}, {R"({"a":1})"}},
      {R"({"a.b":{"$exists":false}})", {R"({})", R"({"a":{}})"}, {R"({"a":{"b":1}})", R"({"a":1})"}},
      {R"({"$not":{"a":{"$exists":true}}})", {R"({})"}, {R"({"a":1})"}},
      {R"({"a":{"$type":"number"}})", {R"({"a":-1.5})"}, {R"({"a":"1"})", R"({"a":null})"}},
      {R"({"a":{"$type":"boolean"}})", {R"({"a":true})", R"({"a":false})"}, {R"({"a":0})"}},
      {R"({"a":{"$type":"string"}})", {R"({"a":""})"}, {R"({"a":[]})"}},
      {R"({"a":{"$type":"object"}})", {R"({"a":{}})"}, {R"({"a":[]})"}},
      {R"({"a":{"$type":"array"}})", {R"({"a":[]})"}, {R"({"a":{}})"}},
      {R"({"a":{"$type":"null"}})", {R"({"a":null})"}, {R"({"a":1})"}},
      {R"({"a":{"$mod":[4,1]}})", {R"({"a":5})"}, {R"({"a":4})", R"({"a":5.0})", R"({"a":"5"})"}},
      {R"({"a":{"$mod":[-1,0]}})", {R"({"a":-9223372036854775808})"}, {}},
      {R"({"a":{"$mod":[4,-3]}})", {R"({"a":-7})"}, {R"({"a":7})"}},
      {R"({"a":{"$regex":"^x.*y$"}})", {R"({"a":"x1y"})"}, {R"({"a":"ax1y"})", R"({"a":1})"}},
      {R"({"a":{"$regex":"é"}})", {R"({"a":"caf\u00e9"})"}, {R"({"a":"cafe"})"}},
      {R"({"a":{"$beginsWith":"x\""}})", {R"({"a":"x\"y"})"}, {R"({"a":"yx"})", R"({"a":["x\""]})"}},
  });
}

TEST(Selector, InvalidOnesAreRefused) {
  EXPECT_EQ(refusal("[]"), "bad_request: Selector error: expected a JSON object");
  EXPECT_EQ(refusal(R"({"$eq":1})"), "invalid_selector: One or more conditions is missing a field name.");
  EXPECT_EQ(refusal(R"({"a":{"$nothing":1}})"), "invalid_operator: Invalid operator: $nothing");
  EXPECT_EQ(refusal(R"({"a":{"$beginsWith":1}})"), "invalid_operator: Invalid operator: $beginsWith");
  EXPECT_EQ(refusal(R"({"a":{"$where":1}})"), "not_supported: Unsupported operator: $where");
  EXPECT_EQ(refusal(R"({"$text":"x"})"), "not_supported: Unsupported operator: $text");
  for (const auto* field : {"", "a..b", ".a", "a.", "\\\\"})
    EXPECT_THAT(refusal(fmt::format(R"({{"{}":1}})", field)), HasSubstr("invalid_field_name")) << field;
  for (const auto* condition :
       {R"("$in":1)",        R"("$nin":{})",      R"("$and":{})",        R"("$or":1)",     R"("$nor":null)",
        R"("$not":1)",       R"("$exists":1)",    R"("$type":1)",        R"("$mod":[1])",  R"("$mod":[0,1])",
        R"("$mod":[1.5,1])", R"("$mod":1)",       R"("$size":-1)",       R"("$size":1.5)", R"("$all":1)",
        R"("$elemMatch":1)", R"("$allMatch":[])", R"("$keyMapMatch":1)", R"("$regex":1)",  R"("$regex":"(")"})
    EXPECT_THAT(refusal(fmt::format(R"({{"a":{{{}}}}})", condition)), HasSubstr("bad_arg")) << condition;
}

TEST(Selector, HostileOnesAreCheap) {
  std::string many = R"({"$or":[)";
  for (std::size_t i = 0; i <= kMaxConditions; ++i)
    many += fmt::format(R"({}{{"a":{}}})", i == 0 ? "" : ",", i);
  EXPECT_THAT(refusal(many + "]}"), HasSubstr("more than 1000 conditions"));
  EXPECT_THAT(refusal(fmt::format(R"({{"a":"{}"}})", std::string(kMaxSelectorBytes, 'x'))),
              HasSubstr("bytes"));
  std::string path = "a";
  for (std::size_t i = 0; i < kMaxPathNames; ++i) path += ".a";
  EXPECT_THAT(refusal(fmt::format(R"({{"{}":1}})", path)), HasSubstr("invalid_field_name"));
  std::string patterns;
  for (std::size_t i = 0; i <= kMaxPatterns; ++i)
    patterns += fmt::format(R"({}"f{}":{{"$regex":"x"}})", i == 0 ? "" : ",", i);
  EXPECT_THAT(refusal("{" + patterns + "}"), HasSubstr("bad_arg"));
  std::string deep;
  for (int i = 0; i < 900; ++i) deep += R"({"$not":)";
  EXPECT_TRUE(matches(deep + R"({"a":1})" + std::string(900, '}'), R"({"a":1})"));
  EXPECT_THAT(refusal(R"({"a":{"$regex":")" + std::string(kMaxPatternBytes + 1, 'x') + "\"}}"),
              HasSubstr("bad_arg"));
  EXPECT_THAT(refusal(R"({"a":{"$regex":"((a{100}){100}){100}"}})"), HasSubstr("bad_arg"));
  // Many conditions on a large value.
  const auto is_too_expensive = [](std::string_view selector, std::string_view document) {
    try {
      matches(selector, document);
      return false;
    } catch (const Error& error) { return error.name() == "selector_too_expensive"; }
  };
  std::string equalities;
  for (int i = 0; i < 20; ++i) equalities += fmt::format(R"({}{{"a":"x{}"}})", i == 0 ? "" : ",", i);
  const std::string large = R"({"a":")" + std::string(1'000'000, 'x') + "\"}";
  EXPECT_TRUE(is_too_expensive(R"({"$or":[)" + equalities + "]}", large));
  EXPECT_FALSE(is_too_expensive(R"({"a":{"$beginsWith":"x"},"b":{"$exists":false}})", large));
  std::string list;
  for (int i = 0; i < 100'000; ++i) list += fmt::format("{}{}", i == 0 ? "" : ",", i);
  EXPECT_TRUE(is_too_expensive(R"({"a":{"$in":[-1,-2]}})", R"({"a":[)" + list + "]}"));
  EXPECT_FALSE(is_too_expensive(R"({"a":{"$size":3}})", R"({"a":[)" + list + "]}"));
  // This takes exponential time with backtracking.
  EXPECT_FALSE(matches(R"({"a":{"$regex":"^(a+)+$"}})", R"({"a":")" + std::string(100'000, 'a') + "b\"}"));
}

std::string normal_form(std::string_view selector) {
  std::string out;
  append_selector(out, Selector::parse(json::compact(selector), TextOperator::allowed).condition());
  return out;
}

TEST(Selector, TextIsTestedByOthers) {
  const auto selector = Selector::parse(R"({"$or":[{"$text":"x"},{"a":1},{"$and":[{"b":1},{"$text":7}]}]})",
                                        TextOperator::allowed);
  const auto matches_text = [&](std::string_view document, std::string_view text) {
    return selector.matches(document, [&](const Condition& condition) { return condition.text == text; });
  };
  EXPECT_TRUE(matches_text("{}", "x"));
  EXPECT_FALSE(matches_text("{}", "7"));
  EXPECT_TRUE(matches_text(R"({"b":1})", "7"));
  EXPECT_TRUE(matches_text(R"({"a":1})", ""));
  EXPECT_EQ(normal_form(R"({"$text":"x","a":1})"),
            R"({"$and":[{"$default":{"$text":"x"}},{"a":{"$eq":1}}]})");
  EXPECT_EQ(normal_form(normal_form(R"({"$text":true})")), normal_form(R"({"$text":true})"));
}

TEST(Selector, TextIsRefusedWhereNoIndexTestsIt) {
  EXPECT_THAT(refusal(R"({"$text":"x"})"), HasSubstr("not_supported"));
  EXPECT_THAT(refusal(R"({"$default":{"$text":"x"}})"), HasSubstr("not_supported"));
  const auto refused = [](std::string_view text) {
    try {
      Selector::parse(text, TextOperator::allowed);
      return std::string("none");
    } catch (const Error& error) { return error.name(); }
  };
  EXPECT_EQ(refused(R"({"$text":"x"})"), "none");
  EXPECT_EQ(refused(R"({"$text":{}})"), "bad_arg");
  EXPECT_EQ(refused(R"({"$text":null})"), "bad_arg");
  EXPECT_EQ(refused(R"({"$not":{"$text":"x"}})"), "bad_arg");
  EXPECT_EQ(refused(R"({"$nor":[{"a":1},{"$text":"x"}]})"), "bad_arg");
  EXPECT_EQ(refused(R"({"a":{"$text":"x"}})"), "invalid_selector");
  EXPECT_EQ(refused(R"({"a":{"$elemMatch":{"$text":"x"}}})"), "invalid_selector");
}

}  // namespace
}  // namespace divan::selector
