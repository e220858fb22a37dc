#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/mango/bookmark.h"
#include "divan/mango/find_request.h"
#include "divan/mango/index_request.h"
#include "divan/mango/projection.h"

namespace divan::mango {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <class Parse>
std::string refusal_of(const Parse& parse) {
  try {
    parse();
    return "none";
  } catch (const Error& error) { return fmt::format("{} {}", error.status(), error.name()); }
}

std::string find_refusal(std::string_view members) {
  return refusal_of([&] {
    FindRequest::parse(
        json::compact(fmt::format(R"({{"selector":{{}}{}{}}})", members.empty() ? "" : ",", members)));
  });
}

// "f0","f1",...
std::string list(std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += fmt::format(R"({}"f{}")", i == 0 ? "" : ",", i);
  return out;
}

std::string repeated(std::string_view text, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += text;
  return out;
}

TEST(FindRequest, HasDefaults) {
  const auto request = FindRequest::parse(R"({"selector":{}})", 7);
  EXPECT_EQ(request.limit, 7u);
  EXPECT_EQ(request.skip, 0u);
  EXPECT_FALSE(request.fields);
  EXPECT_THAT(request.use_index, IsEmpty());
  EXPECT_THAT(request.sort.fields, IsEmpty());
  EXPECT_TRUE(request.waits_for_index());
  EXPECT_TRUE(request.allow_fallback);
}

TEST(FindRequest, ReadsAllMembers) {
  const auto request = FindRequest::parse(json::compact(R"({
    "selector": {"a": 1}, "use_index": ["d", "i"], "bookmark": "b", "limit": 1, "skip": 2,
    "sort": [{"a": "desc"}], "fields": ["a", "b.c"], "partition": "", "r": 3, "conflicts": true,
    "stale": "ok", "update": true, "stable": true, "execution_stats": true, "allow_fallback": false})"));
  EXPECT_THAT(request.use_index, ElementsAre("d", "i"));
  EXPECT_EQ(request.wanted_design(), "_design/d");
  EXPECT_EQ(request.bookmark, "b");
  EXPECT_EQ(request.limit, 1u);
  EXPECT_EQ(request.skip, 2u);
  EXPECT_TRUE(request.sort.descending);
  EXPECT_THAT(*request.fields, ElementsAre("a", "b.c"));
  EXPECT_EQ(request.r, 3u);
  EXPECT_TRUE(request.conflicts);
  EXPECT_FALSE(request.waits_for_index());  // stale
  EXPECT_TRUE(request.execution_stats);
  EXPECT_FALSE(request.allow_fallback);
}

TEST(FindRequest, NamesAnIndexInSeveralWays) {
  EXPECT_THAT(parse_index_name(R"("d")"), ElementsAre("d"));
  EXPECT_THAT(parse_index_name(R"("_design/d")"), ElementsAre("d"));
  EXPECT_THAT(parse_index_name(R"("d/i")"), ElementsAre("d", "i"));
  EXPECT_THAT(parse_index_name(R"("_design/d/i")"), ElementsAre("d", "i"));
  EXPECT_THAT(parse_index_name(R"(["_design/d","i"])"), ElementsAre("_design/d", "i"));
  EXPECT_THAT(parse_index_name("[]"), IsEmpty());
  EXPECT_THAT(parse_index_name("null"), IsEmpty());
}

TEST(FindRequest, RefusesWhatCouchDbRefuses) {
  const auto parse = [](std::string_view json) { return [=] { FindRequest::parse(json); }; };
  EXPECT_EQ(refusal_of(parse("[]")), "400 bad_request");
  EXPECT_EQ(refusal_of(parse("{}")), "400 missing_required_key");
  EXPECT_EQ(refusal_of(parse(R"({"selector":[]})")), "400 invalid_selector_json");
  EXPECT_EQ(refusal_of(parse(R"({"selector":{"a":{"$x":1}}})")), "400 invalid_operator");
  EXPECT_EQ(find_refusal(""), "none");
  for (const auto& [members, error] : std::vector<std::pair<std::string, std::string>>{
           {R"("limit":-1)", "invalid_non_neg_integer"},
           {R"("limit":1.5)", "invalid_non_neg_integer"},
           {R"("limit":"1")", "invalid_non_neg_integer"},
           {R"("skip":-1)", "invalid_non_neg_integer"},
           {R"("r":0)", "invalid_pos_integer"},
           {R"("sort":{})", "invalid_sort_json"},
           {R"("sort":[""])", "invalid_sort_field"},
           {R"("sort":[{"a":"up"}])", "invalid_sort_field"},
           {R"("sort":[{"a":"asc","b":"asc"}])", "invalid_sort_field"},
           {R"("sort":["a",{"b":"desc"}])", "unsupported_mixed_sort"},
           {R"("fields":"a")", "invalid_fields"},
           {R"("fields":[1])", "invalid_field"},
           {R"("fields":[)" + list(kMaxFields + 1) + "]", "invalid_fields"},
           {R"("sort":[)" + list(kMaxSortFields + 1) + "]", "invalid_sort_json"},
           {R"("fields":["a..b"])", "invalid_field_name"},
           {R"("fields":["a)" + repeated(".a", 100'000) + "\"]", "invalid_field_name"},
           {R"("bookmark":1)", "invalid_bookmark"},
           {R"("use_index":1)", "invalid_index_name"},
           {R"("use_index":["a","b","c"])", "invalid_index_name"},
           {R"("use_index":"a/b/c")", "invalid_index_name"},
           {R"("conflicts":1)", "invalid_boolean"},
           {R"("stale":"maybe")", "invalid_ok_or_false_value"},
           {R"("partition":"_p")", "illegal_partition"},
           {R"("partition":"a:b")", "illegal_partition"},
           {R"("limits":1)", "invalid_key"}})
    EXPECT_EQ(find_refusal(members), "400 " + error) << members;
}

TEST(IndexRequest, BecomesAViewOfADesignDocument) {
  const auto request =
      IndexRequest::parse(R"({"index":{"fields":["a",{"b.c":"asc"}]},"ddoc":"d","name":"i"})");
  EXPECT_EQ(request.design_document, "_design/d");
  const auto body = request.add_to("{}");
  EXPECT_EQ(
      *body,
      R"({"language":"query","views":{"i":{"map":{"fields":{"a":"asc","b.c":"asc"},"partial_filter_selector":{}},)"
      R"("reduce":"_count","options":{"def":{"fields":["a",{"b.c":"asc"}]}}}}})");
  EXPECT_FALSE(request.add_to(*body));  // it exists
  const auto other = IndexRequest::parse(R"({"index":{"fields":["x"]},"ddoc":"_design/d","name":"j"})");
  const auto both = other.add_to(*body);
  EXPECT_THAT(*both, HasSubstr(R"("i":{)"));
  EXPECT_THAT(*both, HasSubstr(R"("j":{)"));
  EXPECT_EQ(without_index(*both, IndexType::json, "j"), body);
  EXPECT_EQ(without_index(*body, IndexType::json, "i"), "{}");
  EXPECT_EQ(without_index(*both, IndexType::json, ""), "{}");
  EXPECT_FALSE(without_index(*body, IndexType::json, "j"));
  EXPECT_EQ(refusal_of([&] { request.add_to(R"({"views":{}})"); }), "400 invalid_ddoc_lang");
  // Other members stay.
  EXPECT_EQ(without_index(R"({"language":"query","note":1,"views":{"i":{}}})", IndexType::json, "i"),
            R"({"language":"query","note":1})");
}

TEST(IndexRequest, BecomesAFullTextIndex) {
  const auto request = IndexRequest::parse(
      R"({"index":{"fields":[{"name":"a","type":"string"}],"default_field":{"analyzer":"german"}},)"
      R"("type":"text","ddoc":"d","name":"i"})");
  const auto body = request.add_to("{}");
  EXPECT_EQ(*body, R"({"language":"query","indexes":{"i":{"index":{"default_analyzer":"keyword",)"
                   R"("default_field":{"analyzer":"german"},"partial_filter_selector":{},"selector":{},)"
                   R"("fields":[{"name":"a","type":"string"}],"index_array_lengths":true},)"
                   R"("analyzer":{"name":"perfield","default":"keyword","fields":{"$default":"german"}}}}})");
  EXPECT_FALSE(request.add_to(*body));  // it exists
  const auto view = IndexRequest::parse(R"({"index":{"fields":["x"]},"ddoc":"d","name":"i"})");
  const auto both = view.add_to(*body);
  EXPECT_EQ(without_index(*both, IndexType::json, "i"), body);
  EXPECT_EQ(without_index(*both, IndexType::text, ""), "{}");
  EXPECT_THAT(*without_index(*both, IndexType::text, "i"), HasSubstr(R"("views":{"i":)"));
  EXPECT_FALSE(without_index(*body, IndexType::json, "i"));
  EXPECT_EQ(without_index(*body, IndexType::text, "i"), "{}");
  const auto all = IndexRequest::parse(R"({"index":{"default_field":false},"type":"text"})");
  EXPECT_THAT(all.definition,
              HasSubstr(R"("fields":"all_fields","index_array_lengths":true},"analyzer":"keyword"})"));
}

TEST(IndexRequest, NamesDependOnTheDefinition) {
  const auto name = [](std::string_view index) {
    const auto request = IndexRequest::parse(fmt::format(R"({{"index":{}}})", index));
    EXPECT_EQ(request.design_document, "_design/" + request.name);
    return request.name;
  };
  EXPECT_EQ(name(R"({"fields":["a"]})"), name(R"({"fields":[{"a":"asc"}]})"));
  EXPECT_NE(name(R"({"fields":["a"]})"), name(R"({"fields":["b"]})"));
  EXPECT_NE(name(R"({"fields":["a"]})"), name(R"({"fields":["a"],"partial_filter_selector":{"b":1}})"));
}

TEST(IndexRequest, StoresTheFilterInItsNormalForm) {
  const auto request =
      IndexRequest::parse(R"({"index":{"fields":["a"],"partial_filter_selector":{"$not":{"b":1}}}})");
  EXPECT_THAT(request.definition, HasSubstr(R"("partial_filter_selector":{"b":{"$ne":1}}},"reduce")"));
}

TEST(IndexRequest, RefusesWhatCouchDbRefuses) {
  for (const auto& [request, error] : std::vector<std::pair<std::string, std::string>>{
           {R"({})", "400 missing_required_key"},
           {R"({"index":1})", "400 invalid_index"},
           {R"({"index":{}})", "400 missing_required_key"},
           {R"({"index":{"fields":null}})", "400 invalid_sort_json"},
           {R"({"index":{"fields":["a","a"]}})", "400 invalid_index"},
           {R"({"index":{"fields":["a"],"x":1}})", "400 invalid_key"},
           {R"({"index":{"fields":["a"],"partial_filter_selector":1}})", "400 invalid_selector_json"},
           {R"({"index":{"fields":["a"]},"type":"geo"})", "400 invalid_index"},
           {R"({"index":{"fields":["a"]},"type":1})", "400 invalid_string"},
           {R"({"index":[],"type":"text"})", "400 invalid_index"},
           {R"({"index":{"x":1},"type":"text"})", "400 invalid_key"},
           {R"({"index":{"fields":["a"]},"type":"text"})", "400 invalid_index_fields_definition"},
           {R"({"index":{"fields":1},"type":"text"})", "400 invalid_index"},
           {R"({"index":{"index_array_lengths":1},"type":"text"})", "400 invalid_boolean"},
           {R"({"index":{"selector":1},"type":"text"})", "400 invalid_selector_json"},
           {R"({"index":{"selector":{"$text":"a"}},"type":"text"})", "400 not_supported"},
           {R"({"index":{},"type":"nouveau"})", "503 required index service unavailable"},
           {R"({"index":{"fields":["a"]},"name":""})", "400 invalid_empty_string"},
           {R"({"index":{"fields":["a"]},"ddoc":1})", "400 invalid_string"},
           {R"({"index":{"fields":["a"]},"partitioned":1})", "400 invalid_partitioned_value"},
           {R"({"index":{"fields":["a"]},"w":0})", "400 invalid_pos_integer"}})
    EXPECT_EQ(refusal_of([&, json = std::string_view(request)] { IndexRequest::parse(json); }), error)
        << request;
  EXPECT_THAT(parse_bulk_delete(R"({"docids":["a","_design/b"],"w":3})"),
              ElementsAre("_design/a", "_design/b"));
  EXPECT_EQ(refusal_of([] { parse_bulk_delete(R"({"docids":1})"); }), "400 invalid_bulk_docs");
  EXPECT_EQ(refusal_of([] { parse_bulk_delete(R"({"docids":[1]})"); }), "400 invalid_index_name");
}

TEST(Bookmark, IsReadBack) {
  const Bookmark bookmark{R"(["a",{"b":1}])", "id \"1\""};
  const auto read = Bookmark::decode(bookmark.encode());
  EXPECT_EQ(read.key, bookmark.key);
  EXPECT_EQ(read.id, bookmark.id);
  for (const auto* invalid : {"nil", "!", "", "e30=", "bnVsbA=="})
    EXPECT_EQ(refusal_of([=] { Bookmark::decode(invalid); }), "400 invalid_bookmark") << invalid;
}

std::string projected(const std::vector<std::string>& fields, std::string_view document) {
  std::string out;
  Projection(fields).append(document, out);
  return out;
}

TEST(Projection, HasTheFieldsThatExist) {
  const auto* document = R"({"_id":"x","a":{"b":1,"c":{"d":2}},"e.f":3,"g":[4,{"h":5}],"n":null})";
  EXPECT_EQ(projected({"n", "_id"}, document), R"({"n":null,"_id":"x"})");
  EXPECT_EQ(projected({"a.c.d", "x", "a.b"}, document), R"({"a":{"c":{"d":2},"b":1}})");
  EXPECT_EQ(projected({"a.b", "a"}, document), R"({"a":{"b":1,"c":{"d":2}}})");
  EXPECT_EQ(projected({"a", "a.b"}, document), R"({"a":{"b":1,"c":{"d":2}}})");
  EXPECT_EQ(projected({"e\\.f"}, document), R"({"e.f":3})");
  EXPECT_EQ(projected({"g.1.h"}, document), R"({"g":{"1":{"h":5}}})");
  EXPECT_EQ(projected({"a.b.x", "g.7"}, document), "{}");
  EXPECT_EQ(projected({"g.0", "a.x"}, document), R"({"g":{"0":4}})");
  EXPECT_EQ(projected({"b"}, R"({"b":1,"\u0062":2})"), R"({"b":2})");
}

}  // namespace
}  // namespace divan::mango
