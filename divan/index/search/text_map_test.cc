#include "divan/index/search/text_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "divan/base/error_testing.h"
#include "divan/base/json.h"
#include "divan/index/search/rows.h"

namespace divan::index::search {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

std::vector<Field> find(std::string_view definition, std::string_view document) {
  const auto map = TextMap::parse(json::compact(definition));
  std::vector<Field> fields;
  map.visit_fields(json::compact(document), *text::make_analyzer(map.analyzer),
                   [&](const Field& field) { fields.push_back(field); });
  return fields;
}

// Fields with their values; those of `$fieldnames` without.
std::vector<std::string> fields(std::string_view definition, std::string_view document) {
  std::vector<std::string> found;
  for (const auto& field : find(definition, document)) {
    const bool is_number = field.name.ends_with("number") || field.name.ends_with("length");
    // Numbers are terms, too.
    if (field.name != kFieldNames && !(is_number && !field.is_analyzed))
      found.push_back(field.name + "=" + field.json);
  }
  return found;
}

std::vector<std::string> names(std::string_view definition, std::string_view document) {
  std::vector<std::string> found;
  for (const auto& field : find(definition, document)) {
    if (field.name == kFieldNames) found.push_back(*json::string_value(field.json));
  }
  return found;
}

constexpr std::string_view kDocument = R"({"_id":"x","_rev":"1-a","_attachments":{"f":{"length":1}},
  "a":{"b":"Text","c-d":1.5},"n":null,"t":true,"list":["u",2,["v"],{"w":"z"}],"o":{}})";

TEST(TextMap, ValuesAreInFieldsOfTheirPathsAndTypes) {
  EXPECT_THAT(
      fields("{}", kDocument),
      UnorderedElementsAre(R"(_5fid_3astring="x")", R"(a.b_3astring="Text")", "a.c_2dd_3anumber=1.5",
                           "t_3aboolean=true", R"(list._5b_5d_3astring="u")", "list._5b_5d_3anumber=2",
                           R"(list._5b_5d._5b_5d_3astring="v")", R"(list._5b_5d.w_3astring="z")",
                           "list._5b_5d_3alength=4", "list._5b_5d._5b_5d_3alength=1", R"($default="x")",
                           R"($default="Text")", R"($default="u")", R"($default="v")", R"($default="z")"));
  EXPECT_THAT(names("{}", kDocument),
              UnorderedElementsAre("_5fid_3astring", "a_3aobject", "a.b_3astring", "a.c_2dd_3anumber",
                                   "n_3anull", "t_3aboolean", "list_3aarray", "list._5b_5d_3astring",
                                   "list._5b_5d_3anumber", "list._5b_5d_3aarray", "list._5b_5d_3aobject",
                                   "list._5b_5d._5b_5d_3astring", "list._5b_5d.w_3astring", "o_3aobject"));
}

TEST(TextMap, OnlySomeFieldsAreIndexed) {
  constexpr std::string_view kSome = R"({"fields":[{"name":"a.b","type":"string"},
    {"name":"list.[]","type":"number"},{"name":"n","type":"string"}],"index_array_lengths":false})";
  EXPECT_THAT(fields(kSome, kDocument),
              UnorderedElementsAre(R"(a.b_3astring="Text")", R"($default="Text")", "list._5b_5d_3anumber=2"));
  // The types of their values are known, whatever they are.
  EXPECT_THAT(names(kSome, kDocument),
              UnorderedElementsAre("a.b_3astring", "n_3anull", "list._5b_5d_3astring", "list._5b_5d_3anumber",
                                   "list._5b_5d_3aarray", "list._5b_5d_3aobject"));
  EXPECT_THAT(fields(R"({"default_field":false})", R"({"a":"x"})"),
              UnorderedElementsAre(R"(a_3astring="x")"));
  EXPECT_THAT(fields(R"({"default_field":{"enabled":false}})", R"({"a":"x"})"),
              UnorderedElementsAre(R"(a_3astring="x")"));
}

TEST(TextMap, NumbersAreTerms) {
  std::vector<std::string> terms;
  for (const auto& field : find("{}", R"({"a":[1.50,15e-1,-0.0]})")) {
    if (field.name == "a._5b_5d_3anumber" && !field.is_analyzed) terms.push_back(field.json);
  }
  EXPECT_THAT(terms, ::testing::ElementsAre(R"("1.5")", R"("1.5")", R"("0")"));
}

TEST(TextMap, AFilterChoosesDocuments) {
  for (const auto* filter : {"selector", "partial_filter_selector"}) {
    const std::string definition = std::string("{\"") + filter + R"(":{"a":{"$gt":1}}})";
    EXPECT_THAT(find(definition, R"({"a":1})"), IsEmpty());
    EXPECT_THAT(find(definition, R"({"a":2})"), Not(IsEmpty()));
  }
}

TEST(TextMap, WhatExceedsLimitsCanStillBeFound) {
  // Of a long string, the beginning is a term.
  const std::string text(kMaxTermBytes + 1, 'x');
  EXPECT_THAT(fields(R"({"default_field":false})", R"({"a":")" + text + "\"}"),
              UnorderedElementsAre("a_3astring=" + json::quoted(text.substr(1))));
  // Words of another analyzer are not cut.
  EXPECT_THAT(fields(R"({"default_analyzer":"english"})", R"({"a":")" + text + "\"}"),
              Contains("a_3astring=" + json::quoted(text)));
  // A long name is not indexed; all of its paths are known not to be.
  const std::string name(kMaxFieldBytes - 9, 'n');
  EXPECT_THAT(find("{}", "{\"" + name + "\":1}"), IsEmpty());
  EXPECT_FALSE(TextMap::parse("{}").has_types(name));
  EXPECT_TRUE(TextMap::parse("{}").has_types(name.substr(1)));
  EXPECT_EQ(text_number(std::string(400, '9')), std::numeric_limits<double>::max());
  EXPECT_EQ(text_number("-" + std::string(400, '9')), std::numeric_limits<double>::lowest());
  EXPECT_EQ(text_number("1e-400"), 0);
  EXPECT_EQ(text_number("0." + std::string(400, '0') + "1"), 0);
}

TEST(TextMap, OnlyTheFirstStringsOfAListAreToSortBy) {
  std::string list;
  for (std::size_t i = 0; i <= kMaxValues; ++i) list += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\"";
  std::size_t sortable = 0;
  for (const auto& field : find("{}", "{\"a\":[" + list + "]}"))
    sortable += field.has_values && field.name == "a._5b_5d_3astring" ? 1 : 0;
  EXPECT_EQ(sortable, kMaxValues);
}

TEST(TextMap, InvalidOnesAreRefused) {
  for (const auto* definition :
       {"[]", R"({"fields":1})", R"({"fields":["a"]})", R"({"fields":[{"name":"a","type":"text"}]})",
        R"({"fields":[{"name":"a","type":"string"},{"name":"a","type":"string"}]})",
        R"({"fields":[{"name":"_rev","type":"string"}]})", R"({"fields":[{"name":"","type":"string"}]})",
        R"({"fields":[{"name":"a..b","type":"string"}]})", R"({"default_field":1})",
        R"({"default_field":{"enabled":1}})", R"({"index_array_lengths":1})",
        R"({"selector":{"a":{"$x":1}}})", R"({"selector":{"$text":"a"}})"})
    EXPECT_THROW(TextMap::parse(definition), Error) << definition;
}

}  // namespace
}  // namespace divan::index::search
